/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * TLS as the API server's clients speak it: 1.2 or later, the peer proven by a certificate authority
 * (ours, or those that the system trusts) for the name or address that was asked for.
 */

#include <openssl/ssl.h>

#include "base/err.h"
#include "sources/api_access.h"
#include "sources/api_failure.h"

struct api_tls_config {
	const struct api_blob *ca;                /* NULL or empty: those that the system trusts */
	bool system_too;                          /* these beside ca */
	const struct api_blob *certificate, *key; /* NULL or empty: none */
	bool insecure;                            /* any certificate will do */
};

int api_tls_new(const struct api_tls_config *config, SSL_CTX **ret, struct err *err);

BIO *api_tls_socket(int fd); /* over a socket that stays the caller's; writing raises no SIGPIPE */

/*
 * A client's end that speaks over bio, which it owns from now on, also on failure. peer: the name or
 * address that the certificate must be for. h2: HTTP/2 is offered, before HTTP/1.1.
 */
int api_tls_open(SSL_CTX *context, BIO *bio, const char *peer, bool h2, SSL **ret, struct err *err);

/*
 * What a call with the result r has met: 0, it waits, and *ret_wants_write says for what; else a
 * negative error with its text and its kind. -EPIPE: the other side has ended, as it should.
 */
int api_tls_result(SSL *ssl, int r, const char *peer, bool *ret_wants_write,
		   enum api_failure *ret_failure, struct err *err);
