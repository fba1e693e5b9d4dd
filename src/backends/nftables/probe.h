/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Can this kernel hold table kube-proxy? */

#include "base/addr.h"
#include "base/err.h"

struct nft_socket;

/*
 * Writes all kinds of things that the table has to a table of another name, and deletes it, in one
 * transaction: no other program ever sees it. 1, or 0 with what is missing and since which kernel it is
 * there.
 */
int probe(struct nft_socket *socket, enum family family, struct err *err);
