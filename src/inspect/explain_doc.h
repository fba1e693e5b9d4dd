/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Parts of documents that the outputs of several commands have in common. */

#include "base/doc.h"
#include "inspect/packet_path.h"

struct explanation;

void explain_doc_endpoint(struct doc *doc, const char *key, const struct addr *addr, uint16_t port);
void explain_doc_packet(struct doc *doc, const struct packet *packet);       /* "packet" */
void explain_doc_steps(struct doc *doc, const struct step *steps, size_t n); /* "steps" */
void explain_doc_share(struct doc *doc, struct share share); /* "share" and "percent" */
/* "service"; null where none is known, or without an explanation. */
void explain_doc_service(struct doc *doc, const struct explanation *explanation);
