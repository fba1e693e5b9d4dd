/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/http_request.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

#include "base/addr.h"

/* Letters of a method or of a header's name. */
static bool is_token(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("!#$%&'*+-.^_`|~", *s))
			return false;
	return true;
}

static bool is_visible(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f)
			return false;
	return true;
}

/* The length of the head with its empty line; 0: not complete. */
static size_t head_length(const char *data, size_t n)
{
	const char *at = data;
	const char *end = data + n;

	while ((at = memchr(at, '\n', (size_t)(end - at)))) {
		at++;
		if (at < end && *at == '\n')
			return (size_t)(at + 1 - data);
		if (at + 1 < end && at[0] == '\r' && at[1] == '\n')
			return (size_t)(at + 2 - data);
	}
	return 0;
}

/* Cuts the next line off, without its end; NULL at the empty line, which is before `limit`. */
static char *next_line(char **at, const char *limit)
{
	char *line = *at;
	char *end = memchr(line, '\n', (size_t)(limit - line));

	*at = end + 1;
	if (end > line && end[-1] == '\r')
		end--;
	*end = '\0';
	return *line ? line : NULL;
}

static enum http_method method_of(const char *word)
{
	if (streq(word, "GET"))
		return HTTP_GET;
	if (streq(word, "PUT"))
		return HTTP_PUT;
	return streq(word, "HEAD") ? HTTP_HEAD : HTTP_OTHER;
}

/* What is known of a head while it is read. */
struct head {
	struct http_request *request;
	bool needs_host;       /* HTTP/1.1 */
	const char *authority; /* of the target; NULL: it has none */
	const char *host;      /* of the header; NULL: not seen yet */
	const char *length;    /* likewise */
	bool encoded;          /* it has a Transfer-Encoding */
};

/* A client of a proxy says "http://host/path". The host moves to the start of the target, to have an end. */
static const char *path_of(char *target, struct head *head)
{
	static const char scheme[] = "http://";
	char *host = target + strlen(scheme);
	char *slash;

	if (strncasecmp(target, scheme, strlen(scheme)) != 0)
		return target[0] == '/' || streq(target, "*") ? target : NULL;
	slash = strchrnul(host, '/');
	head->authority = memmove(target, host, (size_t)(slash - host));
	target[slash - host] = '\0';
	return *slash ? slash : "/";
}

/* "GET /path?query HTTP/1.1" */
static int parse_request_line(char *line, struct head *head)
{
	struct http_request *ret = head->request;
	char *target = strchr(line, ' ');
	char *version = target ? strchr(target + 1, ' ') : NULL;
	char *query;

	if (!version)
		return -EBADMSG;
	*target++ = *version++ = '\0';
	if (!is_token(line) || !is_visible(target) || !has_prefix(version, "HTTP/1.") ||
	    !isdigit((unsigned char)version[7]) || version[8])
		return -EBADMSG;
	query = strchr(target, '?');
	ret->query = query ? query + 1 : "";
	if (query)
		*query = '\0';
	ret->method = method_of(line);
	ret->path = path_of(target, head);
	ret->keep_alive = head->needs_host = version[7] != '0';
	return ret->path ? 0 : -EBADMSG;
}

static void take_connection(const char *value, struct http_request *ret)
{
	if (strcasestr(value, "close"))
		ret->keep_alive = false;
	else if (strcasestr(value, "keep-alive"))
		ret->keep_alive = true;
}

/* A header that may come once; equal ones count as one where that can do no harm. */
static int take_once(const char **seen, const char *value, bool equal_is_fine)
{
	if (*seen && !(equal_is_fine && streq(*seen, value)))
		return -EBADMSG;
	*seen = value;
	return 0;
}

static void cut_spaces(char *value)
{
	size_t n = strlen(value);

	while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'))
		value[--n] = '\0';
}

static int parse_header(char *line, struct head *head)
{
	struct http_request *ret = head->request;
	char *value = strchr(line, ':');

	if (!value)
		return -EBADMSG;
	*value++ = '\0';
	if (!is_token(line))
		return -EBADMSG;
	for (const char *c = value; *c; c++)
		if (iscntrl((unsigned char)*c) && *c != '\t')
			return -EBADMSG;
	value += strspn(value, " \t");
	cut_spaces(value);
	if (strcasecmp(line, "Connection") == 0)
		take_connection(value, ret);
	else if (strcasecmp(line, "Accept") == 0)
		ret->accept = value;
	else if (strcasecmp(line, "Host") == 0)
		return take_once(&head->host, value, false);
	else if (strcasecmp(line, "Transfer-Encoding") == 0)
		head->encoded = true;
	else if (strcasecmp(line, "Content-Length") == 0)
		return take_once(&head->length, value, true);
	return 0;
}

/* Which machine is meant, if that can be understood in one way only. */
static int check_host(struct head *head)
{
	if (!head->host && head->needs_host)
		return -EBADMSG;
	if (head->host && !is_visible(head->host))
		return -EBADMSG;
	if (head->host && head->authority && strcasecmp(head->host, head->authority) != 0)
		return -EBADMSG;
	if (!head->host)
		head->host = head->authority;
	head->request->host = head->host ? head->host : "";
	return 0;
}

/* How long the body is; SIZE_MAX: too long to be read, or not known. */
static int check_length(const struct head *head, size_t *ret)
{
	size_t digits = head->length ? strspn(head->length, "0123456789") : 0;

	if (head->length && (digits == 0 || head->length[digits] || head->encoded))
		return -EBADMSG;
	if (head->encoded || digits > 4)
		*ret = SIZE_MAX;
	else
		*ret = digits > 0 ? strtoul(head->length, NULL, 10) : 0;
	if (*ret > HTTP_BODY_MAX)
		*ret = SIZE_MAX;
	return 0;
}

/* Behind the head. 0: it is not there yet; else the length of both. */
static int take_body(const char *data, size_t n, size_t length, size_t body,
		     struct http_request *ret)
{
	if (body == SIZE_MAX || length + body > HTTP_HEAD_MAX) {
		ret->keep_alive = false;
		return (int)length;
	}
	if (length + body > n)
		return 0;
	ret->body = data + length;
	ret->n_body = body;
	return (int)(length + body);
}

int http_request_parse(char *data, size_t n, struct http_request *ret)
{
	size_t length = head_length(data, MIN(n, HTTP_HEAD_MAX));
	struct head head = {.request = ret};
	size_t body = 0;
	char *at = data;
	char *line;
	int r;

	if (length == 0)
		return 0;
	if (memchr(data, '\0', length))
		return -EBADMSG;
	*ret = (struct http_request){.accept = "", .host = "", .body = ""};
	line = next_line(&at, data + length);
	r = line ? parse_request_line(line, &head) : -EBADMSG;
	while (r == 0 && (line = next_line(&at, data + length)))
		r = parse_header(line, &head);
	if (r == 0)
		r = check_host(&head);
	if (r == 0)
		r = check_length(&head, &body);
	return r < 0 ? r : take_body(data, n, length, body, ret);
}

/* The name of a Host, without port and brackets, for the caller to free; NULL: something else is behind it. */
static char *host_name(const char *host)
{
	bool brackets = host[0] == '[';
	size_t n = strcspn(host + brackets, brackets ? "]" : ":");
	const char *end = host + brackets + n;

	if (brackets && *end++ != ']')
		return NULL;
	if (*end && (*end != ':' || end[1 + strspn(end + 1, "0123456789")]))
		return NULL;
	return xasprintf("%.*s", (int)n, host + brackets);
}

bool http_request_is_for(const struct http_request *request, const char *node_name)
{
	cleanup_free char *name = host_name(request->host);
	struct addr addr;

	return !*request->host ||
	       (name && (addr_parse(name, &addr) == 0 || strcasecmp(name, "localhost") == 0 ||
			 strcasecmp(name, node_name) == 0));
}

char *http_query_get(const char *query, const char *name)
{
	size_t length = strlen(name);

	while (*query) {
		size_t n = strcspn(query, "&");

		if (n > length && query[length] == '=' && memcmp(query, name, length) == 0)
			return util_percent_decode(query + length + 1, n - length - 1, true);
		query += n;
		query += *query == '&';
	}
	return NULL;
}
