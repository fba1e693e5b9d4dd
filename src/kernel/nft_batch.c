/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/nft_batch.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "base/fiber.h"
#include "base/oom.h"
#include "kernel/nfnetlink.h"
#include "kernel/nft_describe.h"
#include "kernel/nft_message.h"
#include "kernel/nft_socket.h"

/*
 * Nothing is kept for each message but the message itself. Sequence numbers count from the head of
 * the transaction on, so that the number in an error leads to a message by walking the blocks, and
 * from its index to the subject by a list that has an entry where the subject changes.
 *
 * Blocks come from mmap(), not malloc(): a full sync needs tens of megabytes once, and malloc() would
 * keep them when anything small is allocated behind. Each block is as large as all before it, within
 * bounds, so that a transaction of 2 GiB, the most the kernel takes, has fewer of them than sendmsg()
 * takes pieces (1024).
 */

#define BLOCK_MIN    65536
#define BLOCK_MAX    (4 << 20)
#define BLOCKS_KEPT  (256 << 10) /* bytes of blocks that an empty batch keeps */
#define STRINGS_KEPT (16 << 10)  /* bytes of subjects likewise */
#define MESSAGE_ROOM (MNL_NLMSG_HDRLEN + sizeof(struct nfgenmsg) + NFT_MESSAGE_MAX)

#define SEQUENCE_BEGIN 1 /* of the head; message i has the next number plus i */
#define SEQUENCE_FIRST 2

struct block {
	struct block *next;
	size_t size, used; /* of the whole mapping; of data */
	char data[];
};

/* Messages from `first` on, up to the next entry, are about the text at `offset`. */
struct subject {
	uint32_t first;
	uint32_t offset;
};

#define NO_SUBJECT UINT32_MAX

struct nft_batch {
	struct block *first, *last; /* `last` is written to; those behind it are empty */
	struct nlmsghdr *newest;
	bool open;                    /* the newest is not counted in used and size yet */
	size_t count, size, capacity; /* capacity: bytes of all blocks */

	struct subject *subjects;
	size_t n_subjects, subjects_capacity;
	char *strings;
	size_t strings_used, strings_capacity;

	struct nft_batch_failure failure;
	struct nft_batch_refusal *refusals;
	size_t n_refusals, refusals_capacity;
	bool failed, uncertain;
};

/* -- blocks */

static struct block *block_new(size_t size)
{
	struct block *block =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		oom("a batch of messages", size);
	block->next = NULL;
	block->size = size;
	block->used = 0;
	return block;
}

static void blocks_free(struct block *block)
{
	struct block *next;

	for (; block; block = next) {
		next = block->next;
		munmap(block, block->size);
	}
}

static size_t block_room(const struct block *block)
{
	return block->size - sizeof(*block) - block->used;
}

/* A block with room for a message becomes the last one. */
static void make_room(struct nft_batch *batch)
{
	size_t size = MIN(MAX(batch->capacity, BLOCK_MIN), BLOCK_MAX);

	if (batch->last && block_room(batch->last) >= MESSAGE_ROOM)
		return;
	if (batch->last && batch->last->next) {
		batch->last = batch->last->next;
		return;
	}
	if (batch->last) {
		batch->last->next = block_new(size);
		batch->last = batch->last->next;
	} else {
		batch->first = batch->last = block_new(size);
	}
	batch->capacity += size;
}

/* Empties all and keeps the first few. */
static void blocks_reset(struct nft_batch *batch)
{
	struct block **link = &batch->first;

	batch->capacity = 0;
	while (*link && batch->capacity + (*link)->size <= BLOCKS_KEPT) {
		(*link)->used = 0;
		batch->capacity += (*link)->size;
		link = &(*link)->next;
	}
	blocks_free(*link);
	*link = NULL;
	batch->last = batch->first;
}

/* -- building */

struct nft_batch *nft_batch_new(void)
{
	return xcalloc(1, sizeof(struct nft_batch));
}

struct nft_batch *nft_batch_free(struct nft_batch *batch)
{
	if (!batch)
		return NULL;
	blocks_free(batch->first);
	free(batch->subjects);
	free(batch->strings);
	free(batch->refusals);
	free(batch);
	return NULL;
}

static void forget_failure(struct nft_batch *batch)
{
	batch->n_refusals = 0;
	batch->failed = false;
	batch->uncertain = false;
	memset(&batch->failure, 0, sizeof(batch->failure));
}

void nft_batch_reset(struct nft_batch *batch)
{
	blocks_reset(batch);
	batch->newest = NULL;
	batch->open = false;
	batch->count = batch->size = 0;
	batch->n_subjects = batch->strings_used = 0;
	if (batch->strings_capacity > STRINGS_KEPT) {
		free(take(batch->strings));
		free(take(batch->subjects));
		batch->strings_capacity = batch->subjects_capacity = 0;
	}
	forget_failure(batch);
}

static void close_message(struct nft_batch *batch)
{
	size_t size;

	if (!batch->open)
		return;
	assert(batch->newest->nlmsg_len <= MESSAGE_ROOM);
	size = MNL_ALIGN((size_t)batch->newest->nlmsg_len);
	batch->last->used += size;
	batch->size += size;
	batch->open = false;
}

struct nlmsghdr *nft_batch_message(struct nft_batch *batch, uint16_t type, enum family family,
				   uint16_t flags)
{
	fiber_breathe(); /* a large batch takes long to make */
	close_message(batch);
	make_room(batch);
	batch->newest = nfnetlink_begin(batch->last->data + batch->last->used, NFNL_SUBSYS_NFTABLES,
					(uint8_t)type, nft_family(family), flags,
					(uint32_t)(SEQUENCE_FIRST + batch->count));
	batch->open = true;
	batch->count++;
	return batch->newest;
}

size_t nft_batch_room(const struct nft_batch *batch)
{
	return batch->open ? MESSAGE_ROOM - batch->newest->nlmsg_len : 0;
}

size_t nft_batch_count(const struct nft_batch *batch)
{
	return batch->count;
}

size_t nft_batch_size(const struct nft_batch *batch)
{
	return batch->size + (batch->open ? MNL_ALIGN((size_t)batch->newest->nlmsg_len) : 0);
}

static const char *subject_text(const struct nft_batch *batch, size_t i)
{
	uint32_t offset = batch->subjects[i].offset;

	return offset == NO_SUBJECT ? NULL : batch->strings + offset;
}

static uint32_t add_string(struct nft_batch *batch, const char *s)
{
	size_t n = strlen(s) + 1;
	size_t at = batch->strings_used;

	if (at + n > batch->strings_capacity) {
		batch->strings_capacity = MAX(at + n, batch->strings_capacity * 2);
		batch->strings = xrealloc(batch->strings, batch->strings_capacity);
	}
	memcpy(batch->strings + at, s, n);
	batch->strings_used += n;
	return (uint32_t)at;
}

void nft_batch_subject(struct nft_batch *batch, const char *subject)
{
	size_t n = batch->n_subjects;
	const char *current = n ? subject_text(batch, n - 1) : NULL;

	if (subject && current ? streq(subject, current) : subject == current)
		return;
	if (n && batch->subjects[n - 1].first == batch->count)
		n--; /* nothing was said about that one */
	batch->n_subjects = n;
	array_grow(&batch->subjects, &batch->subjects_capacity, n, sizeof(*batch->subjects));
	batch->subjects[n].first = (uint32_t)batch->count;
	batch->subjects[n].offset = subject ? add_string(batch, subject) : NO_SUBJECT;
	batch->n_subjects = n + 1;
}

/* -- from an answer back to the message */

static const char *subject_of(const struct nft_batch *batch, size_t index)
{
	size_t low = 0, high = batch->n_subjects;

	while (low < high) { /* the first entry behind it */
		size_t middle = (low + high) / 2;

		if (batch->subjects[middle].first <= index)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? subject_text(batch, low - 1) : NULL;
}

static const struct nlmsghdr *message_at(const struct nft_batch *batch, size_t index)
{
	for (const struct block *block = batch->first; block; block = block->next) {
		struct nft_datagram datagram = {block->data, block->used, false};
		const struct nlmsghdr *message;

		while ((message = nft_datagram_next(&datagram)))
			if (message->nlmsg_seq == SEQUENCE_FIRST + index)
				return message;
	}
	return NULL;
}

/* Of a sequence number in an answer: the kernel might say anything. What concerns the transaction
 * as a whole bears the number of its head, or after that was read the number of message 0. */
static size_t index_of(const struct nft_batch *batch, uint32_t sequence, bool whole)
{
	size_t index = (size_t)sequence - SEQUENCE_FIRST;

	return sequence >= SEQUENCE_FIRST && index < batch->count && !whole ? index
									    : NFT_BATCH_WHOLE;
}

static void copy_text(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text ? text : "");
}

/* The first refusal in detail. */
static void note_failure(struct nft_batch *batch, size_t index, const struct nft_error *error)
{
	const struct nlmsghdr *message = message_at(batch, index);
	struct nft_batch_failure *failure = &batch->failure;
	char place[64] = "";
	int n;

	failure->index = index;
	failure->error = error->code;
	copy_text(failure->words, sizeof(failure->words), error->text);
	batch->failed = true;
	if (!message)
		return;
	failure->subject = subject_of(batch, index);
	failure->type = (uint16_t)nft_message_type(message);
	copy_text(failure->table, sizeof(failure->table), nft_describe_table(message));
	copy_text(failure->chain, sizeof(failure->chain), nft_describe_name(message));
	nft_describe_attribute(message, error->offset, place, sizeof(place));
	n = (int)strlen(failure->words);
	if (error->offset && place[0])
		snprintf(failure->words + n, sizeof(failure->words) - (size_t)n, "%sattribute %s",
			 n ? ", " : "", place);
}

static void refuse(struct nft_batch *batch, uint32_t sequence, const struct nft_error *error)
{
	size_t index = index_of(batch, sequence, error->code == -ENOMEM);

	if (batch->failure.n_refused++ == 0)
		note_failure(batch, index, error);
	if (index == NFT_BATCH_WHOLE || batch->n_refusals == NFT_REFUSALS_MAX)
		return;
	array_grow(&batch->refusals, &batch->refusals_capacity, batch->n_refusals,
		   sizeof(*batch->refusals));
	batch->refusals[batch->n_refusals++] =
		(struct nft_batch_refusal){(uint32_t)index, error->code};
}

void nft_batch_answer(struct nft_batch *batch, const void *data, size_t n, nft_echo_fn *echo,
		      void *arg, struct nft_batch_outcome *outcome)
{
	struct nft_datagram datagram = {data, n, false};
	const struct nlmsghdr *message;
	struct nft_error error;

	while ((message = nft_datagram_next(&datagram))) {
		int type = nft_message_type(message);

		if (type >= 0) {
			outcome->echoed = true;
			if (echo)
				echo(arg,
				     index_of(batch, message->nlmsg_seq, type == NFT_MSG_NEWGEN),
				     message);
		} else if (nft_message_error(message, &error) < 0) {
			datagram.broken |= message->nlmsg_type == NLMSG_ERROR;
		} else if (error.code < 0) {
			refuse(batch, message->nlmsg_seq, &error);
		} else {
			outcome->acknowledged = true;
		}
	}
	outcome->lost |= datagram.broken;
}

/* -- the outcome */

static int describe_failure(const struct nft_batch *batch, struct err *err)
{
	const struct nft_batch_failure *failure = &batch->failure;
	const struct nlmsghdr *message = message_at(batch, failure->index);
	char what[NFT_NAME_SIZE * 2 + 64] = "a transaction of nf_tables";
	char words[sizeof(failure->words) + 4] = "";
	char others[64] = "";
	const char *reason = failure->error == -ERESTART ? "another program has written meanwhile"
							 : strerror(-failure->error);

	if (message)
		nft_describe(message, what, sizeof(what));
	if (failure->words[0])
		snprintf(words, sizeof(words), " (%s)", failure->words);
	if (failure->n_refused > 1)
		snprintf(others, sizeof(others), "; %zu more of %zu messages were refused",
			 failure->n_refused - 1, batch->count);
	return err_set(err, failure->error, "%s%s%s: %s%s%s",
		       failure->subject ? failure->subject : "", failure->subject ? ": " : "", what,
		       reason, words, others);
}

/*
 * Errors come alone: what was refused has no echoes. Else echoes come first, the acknowledgement last.
 * When the queue overflows what came first is kept, so one of them is there in any case but one: that
 * the kernel had no memory to answer at all.
 */
int nft_batch_judge(struct nft_batch *batch, const struct nft_batch_outcome *outcome,
		    struct err *err)
{
	if (batch->failed) {
		batch->failure.refusals = batch->refusals;
		batch->failure.n_refusals = batch->n_refusals;
		return describe_failure(batch, err);
	}
	if (outcome->acknowledged || outcome->echoed)
		return outcome->lost ? NFT_COMMIT_ECHOES_LOST : NFT_COMMIT_DONE;
	batch->uncertain = true;
	return err_set(err, outcome->lost ? -ENOBUFS : -EPROTO,
		       "the kernel took a transaction of nf_tables and did not say what became of "
		       "it");
}

bool nft_batch_uncertain(const struct nft_batch *batch)
{
	return batch->uncertain;
}

const struct nft_batch_failure *nft_batch_failure(const struct nft_batch *batch)
{
	return batch->failed ? &batch->failure : NULL;
}

static void describe(const struct nft_batch *batch, size_t index, char *out, size_t size)
{
	const struct nlmsghdr *message = message_at(batch, index);

	if (message)
		nft_describe(message, out, size);
	else
		copy_text(out, size, "a transaction of nf_tables");
}

void nft_batch_reason(const struct nft_batch *batch, const struct nft_batch_refusal *refusal,
		      char *out, size_t size)
{
	char what[160];

	describe(batch, refusal->index, what, sizeof(what));
	snprintf(out, size, "%s: %s", what, strerror(-refusal->error));
}

/* -- sending */

/* Head and foot of a transaction. */
static size_t put_frame(void *buffer, uint16_t type, uint32_t sequence, uint32_t generation)
{
	struct nlmsghdr *message =
		nfnetlink_begin(buffer, NFNL_SUBSYS_NONE, (uint8_t)type, AF_UNSPEC, 0, sequence);
	struct nfgenmsg *head = mnl_nlmsg_get_payload(message);

	message->nlmsg_type = type;
	head->res_id = htons(NFNL_SUBSYS_NFTABLES);
	if (generation)
		mnl_attr_put_u32(message, NFNL_BATCH_GENID, htonl(generation));
	return message->nlmsg_len;
}

/* All blocks in use, with room for head and foot; for the caller to free. */
static struct iovec *list_pieces(const struct nft_batch *batch, size_t *ret_n)
{
	struct iovec *pieces = NULL;
	size_t n = 1, capacity = 0;

	array_grow(&pieces, &capacity, 0, sizeof(*pieces));
	for (struct block *block = batch->first; block; block = block->next) {
		array_grow(&pieces, &capacity, n, sizeof(*pieces));
		if (block->used)
			pieces[n++] = (struct iovec){block->data, block->used};
	}
	array_grow(&pieces, &capacity, n++, sizeof(*pieces));
	*ret_n = n;
	return pieces;
}

static int check_size(const struct nft_socket *socket, size_t size, struct err *err)
{
	size_t limit = nft_socket_send_limit(socket);

	if (size <= limit)
		return 0;
	return err_set(err, -EMSGSIZE,
		       "a transaction of nf_tables has %zu bytes, the socket takes %zu: that needs "
		       "CAP_NET_ADMIN, or a larger net.core.wmem_max",
		       size, limit);
}

static int send_batch(struct nft_socket *socket, const struct nft_batch *batch, uint32_t generation,
		      struct err *err)
{
	uint32_t begin[8], end[8];
	size_t n;
	cleanup_free struct iovec *pieces = list_pieces(batch, &n);
	size_t begin_size = put_frame(begin, NFNL_MSG_BATCH_BEGIN, SEQUENCE_BEGIN, generation);
	size_t end_size =
		put_frame(end, NFNL_MSG_BATCH_END, (uint32_t)(SEQUENCE_FIRST + batch->count), 0);
	int r = check_size(socket, begin_size + batch->size + end_size, err);

	if (r < 0)
		return r;
	pieces[0] = (struct iovec){begin, begin_size};
	pieces[n - 1] = (struct iovec){end, end_size};
	r = nft_socket_send_batch(socket, pieces, n);
	return r < 0 ? err_sys(err, r, "sending a transaction of nf_tables with %zu bytes",
			       batch->size)
		     : 0;
}

int nft_batch_commit(struct nft_socket *socket, struct nft_batch *batch, uint32_t generation,
		     nft_echo_fn *echo, void *arg, struct err *err)
{
	struct nft_batch_outcome outcome = {0};
	const void *data;
	ssize_t n;
	int r;

	forget_failure(batch);
	if (batch->count == 0)
		return 0;
	close_message(batch);
	/* Linux 6.1 acknowledges no end of a transaction: ask the last real message for it. */
	batch->newest->nlmsg_flags |= NLM_F_ACK;
	r = nft_socket_begin(socket);
	if (r < 0)
		return err_sys(err, r, "a transaction of nf_tables");
	r = send_batch(socket, batch, generation, err);
	nft_socket_end(socket);
	if (r < 0)
		return r;
	while ((n = nft_socket_read(socket, &data)) > 0 || n == -ENOBUFS || n == -EMSGSIZE) {
		if (n > 0)
			nft_batch_answer(batch, data, (size_t)n, echo, arg, &outcome);
		else
			outcome.lost = true;
	}
	return nft_batch_judge(batch, &outcome, err);
}
