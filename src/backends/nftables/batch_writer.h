/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is written, as messages of one nf_tables transaction.
 *
 * The elements of one container are gathered in messages of a few hundred. Everything that is
 * removed must be said before anything that is added: batch_writer_flush() stands between the two,
 * and at the end.
 */

#include "backends/nftables/writer.h"

struct nft_batch;
struct port_plan;
struct batch_writer_pending;

/* From which message on a batch is about which service port. */
struct batch_owner {
	size_t first;
	const struct port_plan *port; /* NULL: about none */
};

struct batch_owners {
	struct batch_owner *v;
	size_t n, capacity;
};

struct batch_writer {
	struct writer writer;
	struct nft_batch *batch; /* borrowed */
	const char *table;
	size_t n_elements;           /* said so far */
	bool removing;               /* what is gathered are removals */
	uint32_t clients_number;     /* of the maps that the gathered clients go to */
	struct batch_owners *owners; /* borrowed; NULL: not asked for */
	struct batch_writer_pending *pending[CONTAINER_COUNT];
};

void batch_writer_init(struct batch_writer *writer, enum family family, const char *table,
		       struct nft_batch *batch);
/*
 * From now on no message is about two service ports, and each is noted: when the kernel refuses one,
 * it is known whose it is. The batch is larger by far.
 */
void batch_writer_note_owners(struct batch_writer *writer, struct batch_owners *owners);
void batch_writer_flush(struct batch_writer *writer); /* what is gathered goes to the batch */
void batch_writer_done(struct batch_writer *writer);

/* Beside what a writer can do. */
void batch_writer_table(struct batch_writer *writer, const char *comment); /* if it is not there */
void batch_writer_delete_table(struct batch_writer *writer);               /* it is there */
void batch_writer_flush_rules(struct batch_writer *writer);                /* of all chains */
void batch_writer_flush_chain(struct batch_writer *writer, struct chain chain);
void batch_writer_flush_container(struct batch_writer *writer, enum container container);
void batch_writer_delete_container(struct batch_writer *writer, enum container container);
void batch_writer_delete_counter(struct batch_writer *writer, enum protocol protocol);
void batch_writer_delete_chain(struct batch_writer *writer, const char *name);
void batch_writer_delete_clients(struct batch_writer *writer, enum container container,
				 uint32_t number);

/* An element of a map of clients. */
struct batch_client {
	enum container container;
	uint32_t number; /* of the map */
	struct addr addr;
	uint32_t endpoint;               /* its number */
	uint64_t timeout_ms, expires_ms; /* how long it lives after each use, and from now on */
};

void batch_writer_add_client(struct batch_writer *writer, const struct batch_client *client);

const struct port_plan *batch_owners_find(const struct batch_owners *owners, size_t message);
void batch_owners_done(struct batch_owners *owners);
