/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_h1.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>

void api_h1_init(struct api_h1 *h1, const struct api_exchange_handler *handler, void *arg)
{
	*h1 = (struct api_h1){.handler = handler, .arg = arg};
}

static int garbage(struct err *err, const char *what)
{
	return err_set(err, -EBADMSG, "the answer is not HTTP: %s", what);
}

/* -- lines of a head -- */

static int read_status(struct api_h1 *h1, struct err *err)
{
	const char *line = h1->line;

	if (h1->n_line < strlen("HTTP/1.1 200") || !has_prefix(line, "HTTP/1.") ||
	    (line[7] != '0' && line[7] != '1') || line[8] != ' ' ||
	    strspn(line + 9, "0123456789") != 3 || (line[12] && line[12] != ' ') || line[9] == '0')
		return garbage(err, "its first line is no status");
	h1->answer = (struct api_answer){
		.status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0'),
	};
	h1->last = line[7] == '0';
	h1->has_length = h1->chunked = false;
	h1->left = 0;
	h1->state = API_H1_HEADER;
	return 0;
}

static int read_length(struct api_h1 *h1, const char *value, struct err *err)
{
	size_t n = strlen(value);
	uint64_t length = 0;

	if (n == 0 || n > 18 || strspn(value, "0123456789") != n)
		return garbage(err, "its Content-Length is no number");
	for (; *value; value++)
		length = length * 10 + (uint64_t)(*value - '0');
	if (h1->has_length && h1->left != length)
		return garbage(err, "it has two lengths");
	h1->has_length = true;
	h1->left = length;
	return 0;
}

static int read_coding(struct api_h1 *h1, const char *value, struct err *err)
{
	if (h1->chunked || strcasecmp(value, "chunked") != 0)
		return garbage(err, "its Transfer-Encoding is not chunked");
	h1->chunked = true;
	return 0;
}

static int read_connection(struct api_h1 *h1, const char *value, struct err *err attr_unused)
{
	h1->last |= strcasestr(value, "close") != NULL;
	return 0;
}

static int read_retry_after(struct api_h1 *h1, const char *value, struct err *err attr_unused)
{
	h1->answer.retry_after_s = api_exchange_retry_after(value, strlen(value));
	return 0;
}

static const struct header_reader {
	const char *name;
	int (*read)(struct api_h1 *h1, const char *value, struct err *err);
} readers[] = {
	{"Content-Length", read_length},
	{"Transfer-Encoding", read_coding},
	{"Connection", read_connection},
	{"Retry-After", read_retry_after},
};

static bool is_token(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("!#$%&'*+-.^_`|~", s[i]))
			return false;
	return n > 0;
}

/* Cuts the line in two; the value is without blanks around. */
static int split_header(struct api_h1 *h1, char **ret_value, struct err *err)
{
	char *colon = memchr(h1->line, ':', h1->n_line);
	char *value, *end = h1->line + h1->n_line;

	if (!colon || !is_token(h1->line, (size_t)(colon - h1->line)))
		return garbage(err, "a header has no name");
	*colon = '\0';
	for (value = colon + 1; *value == ' ' || *value == '\t'; value++)
		;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	*ret_value = value;
	return 0;
}

static int read_header(struct api_h1 *h1, struct err *err)
{
	char *value = h1->line;
	int r = split_header(h1, &value, err);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(readers); i++)
		if (strcasecmp(h1->line, readers[i].name) == 0)
			r = readers[i].read(h1, value, err);
	return r;
}

/* -- the body -- */

static bool has_no_body(const struct api_h1 *h1)
{
	int status = h1->answer.status;

	return status == 204 || status == 304 || (h1->tunnel && status / 100 == 2);
}

static int end_head(struct api_h1 *h1, struct err *err)
{
	if (h1->chunked && h1->has_length)
		return garbage(err, "it has a length and chunks");
	if (h1->answer.status < 200) {
		if (h1->answer.status == 101 || ++h1->n_interim > API_H1_INTERIM_MAX)
			return garbage(err, "it does not come to an end of 1xx");
		h1->state = API_H1_STATUS;
		return 0;
	}
	if (has_no_body(h1))
		h1->state = API_H1_DONE;
	else if (h1->chunked)
		h1->state = API_H1_CHUNK;
	else if (h1->has_length)
		h1->state = h1->left > 0 ? API_H1_BODY : API_H1_DONE;
	else
		h1->state = API_H1_BODY_TO_END;
	h1->last |= h1->state == API_H1_BODY_TO_END;
	h1->handler->head(h1->arg, &h1->answer);
	return 0;
}

static int read_chunk_size(struct api_h1 *h1, struct err *err)
{
	size_t n = strspn(h1->line, "0123456789abcdefABCDEF");

	if (n == 0 || n > 15 || (h1->line[n] && !strchr("; \t", h1->line[n])))
		return garbage(err, "a chunk has no size");
	h1->left = 0;
	for (size_t i = 0; i < n; i++) {
		char c = (char)tolower((unsigned char)h1->line[i]);

		h1->left = h1->left << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	h1->state = h1->left > 0 ? API_H1_CHUNK_DATA : API_H1_TRAILER;
	return 0;
}

/* -- what a line means depends on the state -- */

static int on_line(struct api_h1 *h1, struct err *err)
{
	char *ignored;

	switch (h1->state) {
	case API_H1_STATUS:
		return read_status(h1, err);
	case API_H1_HEADER:
		return h1->n_line ? read_header(h1, err) : end_head(h1, err);
	case API_H1_CHUNK:
		h1->n_head = 0; /* of trailers, from here */
		return read_chunk_size(h1, err);
	case API_H1_CHUNK_END:
		if (h1->n_line)
			return garbage(err, "a chunk is longer than it says");
		h1->state = API_H1_CHUNK;
		return 0;
	default: /* API_H1_TRAILER */
		if (h1->n_line)
			return split_header(h1, &ignored, err);
		h1->state = API_H1_DONE;
		return 0;
	}
}

static bool takes_data(const struct api_h1 *h1)
{
	return h1->state == API_H1_BODY || h1->state == API_H1_CHUNK_DATA ||
	       h1->state == API_H1_BODY_TO_END;
}

static size_t feed_data(struct api_h1 *h1, struct api_bytes data)
{
	bool counted = h1->state != API_H1_BODY_TO_END;
	size_t n = counted ? (size_t)MIN(h1->left, (uint64_t)data.n) : data.n;

	h1->handler->data(h1->arg, (struct api_bytes){data.data, n});
	if (!counted)
		return n;
	h1->left -= n;
	if (h1->left == 0)
		h1->state = h1->state == API_H1_BODY ? API_H1_DONE : API_H1_CHUNK_END;
	return n;
}

/* A blank at the start of a line would go on with the header before it. */
static int check_line(struct api_h1 *h1, struct err *err)
{
	if (h1->n_line == 0 || h1->line[h1->n_line - 1] != '\r')
		return garbage(err, "a line does not end in CRLF");
	h1->line[--h1->n_line] = '\0';
	if (h1->line[0] == ' ' || h1->line[0] == '\t')
		return garbage(err, "a line begins with a blank");
	for (size_t i = 0; i < h1->n_line; i++)
		if (((unsigned char)h1->line[i] < ' ' && h1->line[i] != '\t') ||
		    h1->line[i] == 0x7f)
			return garbage(err, "a line has control characters");
	return 0;
}

static ssize_t feed_line(struct api_h1 *h1, struct api_bytes data, struct err *err)
{
	const uint8_t *end = memchr(data.data, '\n', data.n);
	size_t n = end ? (size_t)(end - data.data) : data.n;
	int r;

	h1->n_head += n + 1;
	if (h1->n_line + n >= sizeof(h1->line) || h1->n_head > API_EXCHANGE_HEAD_MAX)
		return garbage(err, "its head is too long");
	memcpy(h1->line + h1->n_line, data.data, n);
	h1->n_line += n;
	if (!end)
		return (ssize_t)n;
	r = check_line(h1, err);
	if (r == 0)
		r = on_line(h1, err);
	h1->n_line = 0;
	return r < 0 ? r : (ssize_t)n + 1;
}

ssize_t api_h1_feed(struct api_h1 *h1, struct api_bytes data, struct err *err)
{
	struct api_bytes left = data;

	while (left.n > 0 && h1->state != API_H1_DONE) {
		ssize_t n =
			takes_data(h1) ? (ssize_t)feed_data(h1, left) : feed_line(h1, left, err);

		if (n < 0)
			return n;
		left.data += n;
		left.n -= (size_t)n;
	}
	return (ssize_t)(data.n - left.n);
}

int api_h1_end(struct api_h1 *h1, struct err *err)
{
	if (h1->state == API_H1_BODY_TO_END)
		h1->state = API_H1_DONE;
	return h1->state == API_H1_DONE
		       ? 0
		       : err_set(err, -EPIPE, "the connection ended in the middle of an answer");
}

void api_h1_request(const struct api_exchange *exchange, struct text *out)
{
	text_printf(out, "%s %s HTTP/1.1\r\nHost: %s\r\n", exchange->method, exchange->target,
		    exchange->authority);
	for (size_t i = 0; i < exchange->n_headers; i++)
		text_printf(out, "%s: %s\r\n", exchange->headers[i].name,
			    exchange->headers[i].value);
	if (exchange->body)
		text_printf(out, "content-length: %zu\r\n", exchange->n_body);
	text_str(out, "\r\n");
	if (exchange->body)
		text_add(out, exchange->body, exchange->n_body);
}
