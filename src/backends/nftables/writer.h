/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who hears what is to be written to table kube-proxy of one family: a netlink transaction
 * (batch_writer.h), a script for nft (script.h), or a count. All of it is said in an order
 * in which each thing is there before it is named.
 */

#include "backends/nftables/element.h"
#include "backends/nftables/statement.h"

struct writer;
struct port_plan;

/* The map of clients of a service port. */
struct clients_map {
	enum container container; /* CONTAINER_CLIENTS or CONTAINER_LOCAL_CLIENTS */
	uint32_t number;          /* of the service port */
	uint32_t size;            /* how many clients it holds */
	const char *comment;
};

struct writer_ops {
	void (*container)(struct writer *writer, enum container container); /* if it is not there */
	void (*clients)(struct writer *writer, const struct clients_map *map); /* likewise */
	void (*counter)(struct writer *writer,
			enum protocol protocol);                  /* likewise: named_counter.h */
	void (*chain)(struct writer *writer, struct chain chain); /* if it is not there */
	void (*rule)(struct writer *writer, const struct nft_rule *rule); /* appended */
	void (*add)(struct writer *writer, const struct element *element);
	void (*remove)(struct writer *writer, const struct element *element);
	/* What is added next is there for that service port; NULL: for none in particular. */
	void (*owner)(struct writer *writer, const struct port_plan *port);
};

struct writer {
	const struct writer_ops *ops;
	enum family family;
	bool by_owner; /* owner() is to be called, and what is shared comes with each owner */
};
