//! TLS: with a certificate that the system trusts, and without.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tallylock::{Client, Code, Options, blocking};
use tallylock_testkit::Server;

const TTL: Duration = Duration::from_secs(60);
/// Longer than a refusal takes on any machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Under this name the child is told where the server is.
const URL: &str = "TALLYLOCK_TEST_TLS_URL";

#[test]
fn a_certificate_must_be_trusted() {
    let server = Server::valkey();
    let certified = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let trusted = folder.path().join("roots.pem");
    std::fs::write(&trusted, certified.cert.pem()).unwrap();
    let address = serve(&certified, server.address().parse().unwrap());
    let url = format!("rediss://{address}");

    let patient = Options::new(&url).unwrap().timeout(PATIENCE).unwrap();
    let begun = Instant::now();
    let error = blocking::Client::connect_with(patient.clone()).unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let error = runtime.block_on(Client::connect_with(patient)).unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(
        begun.elapsed() < PATIENCE,
        "a refusal is not tried again: {:?}",
        begun.elapsed()
    );

    // Which certificates are trusted is read once a process.
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "in_a_process_that_trusts_it", "--ignored"])
        .env("SSL_CERT_FILE", &trusted)
        .env(URL, &url)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && output.contains("1 passed"),
        "{output}"
    );
    let sum: i64 = redis::cmd("GET")
        .arg("k")
        .query(&mut server.connection())
        .unwrap();
    assert_eq!(sum, 3);
}

#[test]
#[ignore = "run by the test above, with an environment of its own"]
fn in_a_process_that_trusts_it() {
    let url = std::env::var(URL).unwrap();
    let counter = blocking::Client::connect(&url)
        .unwrap()
        .counter("k", TTL)
        .unwrap();
    assert_eq!(counter.add(1).unwrap(), 1);
    let big = vec![b'x'; 300_000];
    let patient = Options::new(&url).unwrap().timeout(PATIENCE).unwrap();
    let client = blocking::Client::connect_with(patient).unwrap();
    client.counter("big", TTL).unwrap().add(1).unwrap();
    let value = client.value("big").unwrap();
    assert!(value.replace_if_present(&big, TTL).unwrap());
    assert!(value.get().unwrap().unwrap() == big);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let client = runtime.block_on(Client::connect(&url)).unwrap();
    assert_eq!(
        runtime
            .block_on(client.counter("k", TTL).unwrap().add(2))
            .unwrap(),
        3
    );
}

/// Takes TLS off in front of a server, one connection after the other, each on a thread.
fn serve(certified: &CertifiedKey<rcgen::KeyPair>, server: SocketAddr) -> SocketAddr {
    let key = PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let config = Arc::clone(&config);
            thread::spawn(move || relay(client?, TcpStream::connect(server)?, config));
        }
    });
    address
}

fn relay(client: TcpStream, mut server: TcpStream, config: Arc<ServerConfig>) -> io::Result<()> {
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut client = StreamOwned::new(session, client);
    // One thread for both directions: neither side is waited for longer than a moment.
    let moment = Some(Duration::from_millis(1));
    client.sock.set_read_timeout(moment)?;
    server.set_read_timeout(moment)?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if let Some(read) = read_some(&mut client, &mut buffer)? {
            server.write_all(&buffer[..read])?;
        }
        if let Some(read) = read_some(&mut server, &mut buffer)? {
            client.write_all(&buffer[..read])?;
            client.flush()?;
        }
    }
}

/// What there was to read, nothing if there was nothing yet, an error at the end.
fn read_some(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match from.read(buffer) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
