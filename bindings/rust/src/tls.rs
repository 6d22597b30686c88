//! TLS by rustls: the system's root certificates, and ring chosen by name, so that no other crate's choice matters.

use std::fmt::Display;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tallylock_core::error::{Code, Error};
use tallylock_core::step::Undelivered;

/// The configuration of all connections, made when the first is opened.
pub(crate) fn config() -> Result<Arc<ClientConfig>, Undelivered> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    // A failure is not kept: the certificates may be there the next time.
    let config = Arc::new(load()?);
    Ok(Arc::clone(CONFIG.get_or_init(|| config)))
}

/// The name that the server's certificate must be for.
pub(crate) fn server_name(host: &str) -> Result<ServerName<'static>, Undelivered> {
    ServerName::try_from(host.to_owned())
        .map_err(|_| refused(format!("{host:?} is no name that a certificate can be for")))
}

/// Why there is no connection after this failure of a TLS handshake.
pub(crate) fn undelivered(error: &io::Error) -> Undelivered {
    match error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
    {
        Some(tls) => refused(tls.to_string()),
        None => Undelivered::NotSent(format!("TLS could not be agreed on: {error}")),
    }
}

fn load() -> Result<ClientConfig, Undelivered> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    // Among a system's certificates there are always some that rustls does not take; they are no reason to stop.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found
            .errors
            .first()
            .map_or_else(|| "none are installed".to_owned(), ToString::to_string);
        return Err(refused(format!(
            "the system has no root certificates ({why}); set SSL_CERT_FILE to a file of them"
        )));
    }
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
    Ok(config)
}

fn refused(why: impl Display) -> Undelivered {
    Undelivered::Refused(Error::new(Code::Unavailable, format!("TLS: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_failure_is_a_refusal_and_a_cut_is_not() {
        let certificate =
            rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let refusal = undelivered(&io::Error::new(io::ErrorKind::InvalidData, certificate));
        assert!(
            matches!(refusal, Undelivered::Refused(error) if error.code() == Code::Unavailable)
        );
        let cut = undelivered(&io::ErrorKind::UnexpectedEof.into());
        assert!(matches!(cut, Undelivered::NotSent(_)));
    }

    #[test]
    fn a_host_must_be_a_name_or_an_address() {
        for good in ["db.example", "127.0.0.1", "::1"] {
            assert!(server_name(good).is_ok());
        }
        assert!(matches!(
            server_name("under score!"),
            Err(Undelivered::Refused(_))
        ));
    }
}
