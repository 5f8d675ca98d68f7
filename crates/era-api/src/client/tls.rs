//! Which certificates are trusted, for requests and for WebSockets. Touched only by `https`.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::ClientError;

fn bad(why: impl std::fmt::Display) -> ClientError {
    ClientError::BadAuthority { why: why.to_string() }
}

/// For requests: what this PEM text holds, and nothing else.
pub(super) fn for_requests(pem: &[u8]) -> Result<TlsConfig, ClientError> {
    let mut certificates: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(certificate) = item.map_err(bad)? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        return Err(bad("no certificate in it"));
    }
    let roots = RootCerts::new_with_certs(&certificates);
    Ok(TlsConfig::builder().root_certs(roots).build())
}

/// For WebSockets: the same, or the public authorities where no PEM text is given.
pub(super) fn for_sockets(pem: Option<&[u8]>) -> Result<Arc<ClientConfig>, ClientError> {
    let mut roots = RootCertStore::empty();
    match pem {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                roots.add(certificate.map_err(bad)?).map_err(bad)?;
            }
        }
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(bad)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_trusts_nobody_and_says_so() {
        let error = for_requests(b"not a certificate").unwrap_err();
        assert!(error.to_string().contains("PEM file"), "{error}");
    }

    #[test]
    fn public_authorities_are_trusted_where_none_is_named() {
        assert!(for_sockets(None).is_ok());
    }
}
