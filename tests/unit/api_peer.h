/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Servers and proxies on the loopback for tests of the API client: each connection has a thread of its own, in
 * which a function of the test reads and writes as it likes. All waits end after PEER_PATIENCE_S.
 */

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

#define PEER_PATIENCE_S  20
#define PEER_CONNECTIONS 16

/* -- certificates */

struct peer_identity {
	EVP_PKEY *key;
	X509 *certificate;
};

struct peer_wish {
	const char *name;                   /* common name */
	const char *alternative;            /* "DNS:k,IP:127.0.0.1"; NULL: none */
	const struct peer_identity *issuer; /* NULL: itself, an authority */
	long from_s, until_s;               /* from now */
};

static inline void peer_extend(X509 *certificate, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX context;
	X509_EXTENSION *extension;

	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	assert(extension);
	X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
}

static inline struct peer_identity peer_identity_new(const struct peer_wish *wish)
{
	static atomic_int serial;
	struct peer_identity own = {EVP_EC_gen("P-256"), X509_new()};
	const struct peer_identity *issuer = wish->issuer ? wish->issuer : &own;
	X509_NAME *name = X509_get_subject_name(own.certificate);

	X509_set_version(own.certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(own.certificate), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(own.certificate), wish->from_s);
	X509_gmtime_adj(X509_getm_notAfter(own.certificate), wish->until_s);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)wish->name, -1,
				   -1, 0);
	X509_set_issuer_name(own.certificate, X509_get_subject_name(issuer->certificate));
	X509_set_pubkey(own.certificate, own.key);
	peer_extend(own.certificate, issuer->certificate, NID_basic_constraints,
		    wish->issuer ? "CA:FALSE" : "critical,CA:TRUE");
	if (wish->alternative)
		peer_extend(own.certificate, issuer->certificate, NID_subject_alt_name,
			    wish->alternative);
	X509_sign(own.certificate, issuer->key, EVP_sha256());
	return own;
}

static inline void peer_identity_done(struct peer_identity *identity)
{
	EVP_PKEY_free(identity->key);
	X509_free(identity->certificate);
}

/* As PEM, the caller's to free. */
static inline char *peer_pem(const struct peer_identity *identity, bool key)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *data, *copy;
	long n;

	if (key)
		PEM_write_bio_PrivateKey(bio, identity->key, NULL, NULL, 0, NULL, NULL);
	else
		PEM_write_bio_X509(bio, identity->certificate);
	n = BIO_get_mem_data(bio, &data);
	copy = xasprintf("%.*s", (int)n, data);
	BIO_free(bio);
	return copy;
}

/* -- servers */

struct peer_io {
	struct peer *peer;
	int fd;
	SSL *ssl; /* NULL: plain */
	pthread_t thread;
};

struct peer {
	int listener;
	uint16_t port;
	SSL_CTX *tls;                      /* NULL: plain */
	void (*serve)(struct peer_io *io); /* a connection, until it returns */
	void *arg;                         /* for serve() */
	atomic_int n;                      /* connections so far */
	struct peer_io io[PEER_CONNECTIONS];
	pthread_t thread;
};

static inline ssize_t peer_read(struct peer_io *io, void *data, size_t n)
{
	return io->ssl ? SSL_read(io->ssl, data, (int)n) : recv(io->fd, data, n, 0);
}

static inline bool peer_write(struct peer_io *io, const void *data, size_t n)
{
	const char *at = data;

	while (n > 0) {
		ssize_t r = io->ssl ? SSL_write(io->ssl, at, (int)MIN(n, 1u << 20))
				    : send(io->fd, at, n, MSG_NOSIGNAL);

		if (r <= 0)
			return false;
		at += r;
		n -= (size_t)r;
	}
	return true;
}

static inline bool peer_say(struct peer_io *io, const char *text)
{
	return peer_write(io, text, strlen(text));
}

/* A head, up to its empty line; false: the connection has ended. */
static inline bool peer_read_head(struct peer_io *io, char *head, size_t size)
{
	size_t n = 0;

	while (n + 1 < size && peer_read(io, head + n, 1) == 1) {
		head[++n] = '\0';
		if (has_suffix(head, "\r\n\r\n"))
			return true;
	}
	return false;
}

static inline void peer_limit(int fd)
{
	const struct timeval limit = {.tv_sec = PEER_PATIENCE_S};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static inline void *peer_connection(void *arg)
{
	struct peer_io *io = arg;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE); /* OpenSSL's own sockets raise it; the client's must not */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (io->peer->tls) {
		io->ssl = SSL_new(io->peer->tls);
		SSL_set_fd(io->ssl, io->fd);
	}
	if (!io->ssl || SSL_accept(io->ssl) == 1)
		io->peer->serve(io);
	if (io->ssl)
		SSL_shutdown(io->ssl);
	SSL_free(io->ssl);
	shutdown(io->fd, SHUT_RDWR);
	return NULL;
}

static inline void *peer_accept(void *arg)
{
	struct peer *peer = arg;

	for (int fd; (fd = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
		struct peer_io *io = &peer->io[peer->n];

		assert(peer->n < PEER_CONNECTIONS);
		peer_limit(fd);
		*io = (struct peer_io){.peer = peer, .fd = fd};
		peer->n++; /* before it answers: who gets the answer may ask how many there were */
		pthread_create(&io->thread, NULL, peer_connection, io);
	}
	return NULL;
}

static inline int peer_choose(SSL *ssl attr_unused, const unsigned char **out, unsigned char *n_out,
			      const unsigned char *in, unsigned int n_in, void *arg)
{
	const char *own = arg; /* one, with its length before */

	return SSL_select_next_proto((unsigned char **)out, n_out, (const unsigned char *)own,
				     (unsigned int)strlen(own), in, n_in) == OPENSSL_NPN_NEGOTIATED
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_NOACK;
}

/* identity: NULL, without TLS. protocol: "\2h2", "\10http/1.1". */
static inline void peer_start(struct peer *peer, const struct peer_identity *identity,
			      const char *protocol, void (*serve)(struct peer_io *), void *arg)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(to);

	*peer = (struct peer){.serve = serve, .arg = arg};
	peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert(bind(peer->listener, (struct sockaddr *)&to, size) == 0);
	assert(listen(peer->listener, 16) == 0);
	assert(getsockname(peer->listener, (struct sockaddr *)&to, &size) == 0);
	peer->port = ntohs(to.sin_port);
	if (identity) {
		peer->tls = SSL_CTX_new(TLS_server_method());
		SSL_CTX_use_certificate(peer->tls, identity->certificate);
		SSL_CTX_use_PrivateKey(peer->tls, identity->key);
		SSL_CTX_set_alpn_select_cb(peer->tls, peer_choose, (void *)protocol);
	}
	pthread_create(&peer->thread, NULL, peer_accept, peer);
}

static inline void peer_stop(struct peer *peer)
{
	shutdown(peer->listener, SHUT_RDWR);
	pthread_join(peer->thread, NULL);
	close(peer->listener);
	for (int i = 0; i < peer->n; i++) {
		shutdown(peer->io[i].fd, SHUT_RDWR);
		pthread_join(peer->io[i].thread, NULL);
		close(peer->io[i].fd);
	}
	SSL_CTX_free(peer->tls);
}

/* Connects to a port here and copies bytes both ways, as a proxy does once it has agreed. */
static inline void peer_tunnel(struct peer_io *io, uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char data[16384];
	ssize_t n = 1;

	assert(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
	peer_limit(fd);
	while (n > 0) {
		struct pollfd ends[] = {{.fd = io->fd, .events = POLLIN},
					{.fd = fd, .events = POLLIN}};
		bool pending = io->ssl && SSL_pending(io->ssl) > 0;

		if (poll(ends, 2, pending ? 0 : -1) < 0)
			break;
		if (pending || ends[0].revents) {
			n = peer_read(io, data, sizeof(data));
			if (n > 0 && send(fd, data, (size_t)n, MSG_NOSIGNAL) != n)
				break;
		} else {
			n = recv(fd, data, sizeof(data), 0);
			if (n > 0 && !peer_write(io, data, (size_t)n))
				break;
		}
	}
	shutdown(io->fd, SHUT_RDWR);
	close(fd);
}
