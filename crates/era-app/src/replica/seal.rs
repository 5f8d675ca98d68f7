//! What makes the line between a replica and the leader private: TLS 1.3 without certificates.
//!
//! Both ends know the leader's secret, and each end's key follows from it. So each shows that it
//! knows the secret, and nobody else can read, change or answer, with nothing to hand out or to
//! renew: no authority, no names, no dates. The keys are sent raw (RFC 7250).

use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, ClientConfig};
use rustls::crypto::ring::{default_provider, sign::any_eddsa_type};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, ServerConfig};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// What stands before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410).
const PKCS8_ED25519: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// The name of an end in the derivation of its key. Once a site runs, it is the same for ever.
const LEADER: &str = "era 2026-11-18 line to the leader: the leader's key";
const REPLICA: &str = "era 2026-11-18 line to the leader: a replica's key";

/// The replica's end of a connection, once the other end has shown that it knows the secret.
pub(super) async fn connect(
    stream: TcpStream,
    secret: &[u8; 32],
) -> io::Result<TlsStream<TcpStream>> {
    let config = to_leader(secret).map_err(io::Error::other)?;
    // Nobody reads it: keys are compared, not names.
    let name = ServerName::try_from("leader").map_err(io::Error::other)?;
    Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?.into())
}

/// The leader's end.
pub(super) async fn accept(
    stream: TcpStream,
    secret: &[u8; 32],
) -> io::Result<TlsStream<TcpStream>> {
    let config = to_replicas(secret).map_err(io::Error::other)?;
    Ok(TlsAcceptor::from(Arc::new(config)).accept(stream).await?.into())
}

fn to_leader(secret: &[u8; 32]) -> Result<ClientConfig, Error> {
    let provider = Arc::new(default_provider());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Expected::new(secret, LEADER, provider)?))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::new(
            key(secret, REPLICA)?,
        ))));
    config.enable_sni = false;
    Ok(config)
}

fn to_replicas(secret: &[u8; 32]) -> Result<ServerConfig, Error> {
    let provider = Arc::new(default_provider());
    let config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(Expected::new(secret, REPLICA, provider)?))
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(key(
            secret, LEADER,
        )?))));
    Ok(config)
}

/// The key of one end.
fn key(secret: &[u8; 32], whose: &str) -> Result<CertifiedKey, Error> {
    let mut pkcs8 = PKCS8_ED25519.to_vec();
    pkcs8.extend(blake3::derive_key(whose, secret));
    let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8))?;
    let public = key.public_key().ok_or(Error::General("a key without a public half".into()))?;
    let public = CertificateDer::from(public.to_vec());
    Ok(CertifiedKey::new(vec![public], key))
}

/// Takes one key for the other end's, and no other.
#[derive(Debug)]
struct Expected {
    key: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl Expected {
    fn new(
        secret: &[u8; 32],
        whose: &str,
        provider: Arc<CryptoProvider>,
    ) -> Result<Expected, Error> {
        let key = key(secret, whose)?.end_entity_cert()?.clone().into_owned();
        Ok(Expected { key, provider })
    }

    fn is(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        // What is compared is public.
        if *shown == self.key { Ok(()) } else { Err(CertificateError::UnknownIssuer.into()) }
    }

    fn signed(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signature, known)
    }
}

/// An older version is not offered, so nothing of it is ever to be judged.
fn older() -> Result<HandshakeSignatureValid, Error> {
    Err(PeerIncompatible::Tls12NotOfferedOrEnabled.into())
}

impl ServerCertVerifier for Expected {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.is(shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _shown: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        older()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed(message, shown, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Expected {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.is(shown).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _shown: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        older()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed(message, shown, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A connection of one who knows which key the leader's is, and has this key of its own.
    pub(in super::super) async fn pretend(
        stream: TcpStream,
        leader: &[u8; 32],
        own: Option<[u8; 32]>,
    ) -> io::Result<TlsStream<TcpStream>> {
        let provider = Arc::new(default_provider());
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(
                Expected::new(leader, LEADER, provider).unwrap(),
            ));
        let config = match own {
            None => config.with_no_client_auth(),
            Some(own) => config.with_client_cert_resolver(Arc::new(
                AlwaysResolvesClientRawPublicKeys::new(Arc::new(key(&own, REPLICA).unwrap())),
            )),
        };
        let name = ServerName::try_from("leader").unwrap();
        Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?.into())
    }

    #[test]
    fn the_ends_have_keys_of_their_own() {
        let keys = [([1; 32], LEADER), ([1; 32], REPLICA), ([2; 32], LEADER)]
            .map(|(secret, whose)| key(&secret, whose).unwrap().cert);
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
    }
}
