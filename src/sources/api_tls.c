/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include "base/addr.h"

static bool given(const struct api_blob *blob)
{
	return blob && blob->data;
}

/* The first reason that OpenSSL has, which is the cause of all others. */
static const char *reason(void)
{
	unsigned long code = ERR_get_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return text ? text : "no reason is given";
}

/* Without it a key with a passphrase would ask for that on our terminal. */
static int no_passphrase(char *out attr_unused, int size attr_unused, int writing attr_unused,
			 void *arg attr_unused)
{
	return -1;
}

static BIO *reader(const struct api_blob *blob)
{
	return BIO_new_mem_buf(blob->data, (int)blob->n);
}

/* -- a context -- */

static int trust(X509_STORE *store, const struct api_blob *ca, struct err *err)
{
	BIO *bio = reader(ca);
	size_t n = 0;
	X509 *x509;

	while ((x509 = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL))) {
		n += X509_STORE_add_cert(store, x509) == 1;
		X509_free(x509);
	}
	BIO_free(bio);
	if (n == 0)
		return err_set(err, -EINVAL, "the certificate authority cannot be read: %s",
			       reason());
	ERR_clear_error(); /* the end was reached */
	return 0;
}

static int trust_all(SSL_CTX *context, const struct api_tls_config *config, struct err *err)
{
	bool system = !given(config->ca) || config->system_too;
	int r = given(config->ca) ? trust(SSL_CTX_get_cert_store(context), config->ca, err) : 0;

	if (r == 0 && system && SSL_CTX_set_default_verify_paths(context) != 1)
		r = err_set(err, -EINVAL, "the system's certificates cannot be read: %s", reason());
	return r;
}

static int use_certificate(SSL_CTX *context, const struct api_blob *certificate, struct err *err)
{
	BIO *bio = reader(certificate);
	X509 *x509 = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
	bool good = x509 && SSL_CTX_use_certificate(context, x509) == 1;

	X509_free(x509);
	while (good && (x509 = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)))
		if (SSL_CTX_add0_chain_cert(context, x509) != 1)
			good = false;
	BIO_free(bio);
	if (!good)
		return err_set(err, -EINVAL, "the client certificate cannot be used: %s", reason());
	ERR_clear_error();
	return 0;
}

static int use_key(SSL_CTX *context, const struct api_blob *key, struct err *err)
{
	BIO *bio = reader(key);
	EVP_PKEY *pkey = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
	bool good = pkey && SSL_CTX_use_PrivateKey(context, pkey) == 1 &&
		    SSL_CTX_check_private_key(context) == 1;

	EVP_PKEY_free(pkey);
	BIO_free(bio);
	return good ? 0 : err_set(err, -EINVAL, "the client's key cannot be used: %s", reason());
}

int api_tls_new(const struct api_tls_config *config, SSL_CTX **ret, struct err *err)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	int r = 0;

	if (!context)
		return err_set(err, -ENOMEM, "OpenSSL cannot be started: %s", reason());
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
					  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					  SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(context, config->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	/* a certificate that is named as an authority is one, also if another has signed it */
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
	if (!config->insecure)
		r = trust_all(context, config, err);
	if (r == 0 && given(config->certificate))
		r = use_certificate(context, config->certificate, err);
	if (r == 0 && given(config->certificate) && given(config->key))
		r = use_key(context, config->key, err);
	if (r < 0) {
		SSL_CTX_free(context);
		return r;
	}
	*ret = context;
	return 0;
}

/* -- a connection -- */

static int write_quietly(BIO *bio, const char *data, int n)
{
	ssize_t r = send(BIO_get_fd(bio, NULL), data, (size_t)n, MSG_NOSIGNAL);

	BIO_clear_retry_flags(bio);
	if (r <= 0 && BIO_sock_should_retry((int)r))
		BIO_set_retry_write(bio);
	return (int)r;
}

/* OpenSSL's own, but for writing; made once. */
BIO *api_tls_socket(int fd)
{
	static BIO_METHOD *method;
	const BIO_METHOD *own = BIO_s_socket();
	BIO *bio;

	if (!method) {
		method = BIO_meth_new(BIO_TYPE_SOCKET, "socket");
		BIO_meth_set_write(method, write_quietly);
		BIO_meth_set_read(method, BIO_meth_get_read(own));
		BIO_meth_set_puts(method, BIO_meth_get_puts(own));
		BIO_meth_set_ctrl(method, BIO_meth_get_ctrl(own));
		BIO_meth_set_create(method, BIO_meth_get_create(own));
		BIO_meth_set_destroy(method, BIO_meth_get_destroy(own));
	}
	bio = BIO_new(method);
	BIO_set_fd(bio, fd, BIO_NOCLOSE);
	return bio;
}

/* As in Go, the subject's common name is no name for this. */
static bool set_peer(SSL *ssl, const char *peer)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
	struct addr addr;

	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
						       X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (addr_parse(peer, &addr) == 0)
		return X509_VERIFY_PARAM_set1_ip(param, addr.bytes, addr_bytes(addr.family)) == 1;
	return X509_VERIFY_PARAM_set1_host(param, peer, 0) == 1 &&
	       SSL_set_tlsext_host_name(ssl, peer) == 1;
}

int api_tls_open(SSL_CTX *context, BIO *bio, const char *peer, bool h2, SSL **ret, struct err *err)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1";
	SSL *ssl = SSL_new(context);
	size_t skip = h2 ? 0 : 3;

	if (!ssl) {
		BIO_free_all(bio);
		return err_set(err, -ENOMEM, "OpenSSL cannot be started: %s", reason());
	}
	SSL_set_bio(ssl, bio, bio);
	SSL_set_connect_state(ssl);
	if (SSL_set_alpn_protos(ssl, both + skip, (unsigned int)(sizeof(both) - 1 - skip)) != 0 ||
	    !set_peer(ssl, peer)) {
		SSL_free(ssl);
		return err_set(err, -EINVAL, "TLS cannot ask for %s: %s", peer, reason());
	}
	*ret = ssl;
	return 0;
}

static int explain_refusal(SSL *ssl, const char *peer, struct err *err)
{
	long result =
		SSL_get_verify_mode(ssl) & SSL_VERIFY_PEER ? SSL_get_verify_result(ssl) : X509_V_OK;

	if (result == X509_V_ERR_HOSTNAME_MISMATCH || result == X509_V_ERR_IP_ADDRESS_MISMATCH)
		return err_set(err, -EPROTO, "the certificate is not for %s", peer);
	if (result != X509_V_OK)
		return err_set(err, -EPROTO, "the certificate is not accepted: %s",
			       X509_verify_cert_error_string(result));
	return err_set(err, -EPROTO, "TLS: %s", reason());
}

int api_tls_result(SSL *ssl, int r, const char *peer, bool *ret_wants_write,
		   enum api_failure *ret_failure, struct err *err)
{
	int errno_then = errno;

	switch (SSL_get_error(ssl, r)) {
	case SSL_ERROR_WANT_READ:
		*ret_wants_write = false;
		return 0;
	case SSL_ERROR_WANT_WRITE:
		*ret_wants_write = true;
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		*ret_failure = API_FAILURE_CONNECT;
		return err_set(err, -EPIPE, "the connection was closed");
	case SSL_ERROR_SYSCALL:
		ERR_clear_error();
		*ret_failure = API_FAILURE_CONNECT;
		if (errno_then)
			return err_set(err, -ECONNRESET, "the connection was lost: %s",
				       strerror(errno_then));
		return err_set(err, -ECONNRESET, "the connection was lost");
	default:
		break;
	}
	if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
		ERR_clear_error();
		*ret_failure = API_FAILURE_CONNECT;
		return err_set(err, -ECONNRESET, "the connection was lost");
	}
	*ret_failure = API_FAILURE_TLS;
	r = explain_refusal(ssl, peer, err);
	ERR_clear_error();
	return r;
}
