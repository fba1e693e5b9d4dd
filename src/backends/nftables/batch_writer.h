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
struct batch_writer_pending;

struct batch_writer {
	struct writer writer;
	struct nft_batch *batch; /* borrowed */
	const char *table;
	size_t n_elements; /* said so far */
	bool removing;     /* what is gathered are removals */
	struct batch_writer_pending *pending[CONTAINER_COUNT];
};

void batch_writer_init(struct batch_writer *writer, enum family family, const char *table,
		       struct nft_batch *batch);
void batch_writer_flush(struct batch_writer *writer); /* what is gathered goes to the batch */
void batch_writer_done(struct batch_writer *writer);

/* Beside what a writer can do. */
void batch_writer_table(struct batch_writer *writer, const char *comment); /* if it is not there */
void batch_writer_delete_table(struct batch_writer *writer);               /* it is there */
void batch_writer_flush_rules(struct batch_writer *writer);                /* of all chains */
void batch_writer_flush_chain(struct batch_writer *writer, struct chain chain);
void batch_writer_flush_container(struct batch_writer *writer, enum container container);
void batch_writer_delete_chain(struct batch_writer *writer, const char *name);
