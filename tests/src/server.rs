//! Real servers for tests: each is private to one test, on a free loopback port, and gone when the test is.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How long a server may take to answer its first command.
const START_DEADLINE: Duration = Duration::from_secs(20);
/// How often another port is tried when somebody took the one that was free a moment ago.
const PORT_ATTEMPTS: usize = 8;

/// Which server a test runs against. Each real-server test runs against both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Valkey 9: error codes at the front of a script error.
    Valkey,
    /// Redis 6.2: error codes buried in a script error's text.
    Redis,
}

impl Kind {
    /// Both servers, for a test that loops over them; [`on_each_server!`](crate::on_each_server) makes two tests.
    pub const ALL: [Self; 2] = [Self::Valkey, Self::Redis];

    /// Starts a server of this kind with more arguments, each as on its command line (`&["--maxmemory", "3mb"]`).
    ///
    /// # Panics
    /// If the binary is missing, with the command that gets it, or if the server doesn't answer.
    pub fn start(self, arguments: &[&str]) -> Server {
        Server::start(self, arguments)
    }

    fn binary(self) -> PathBuf {
        let name = match self {
            Self::Valkey => "valkey-server",
            Self::Redis => "redis-server",
        };
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../.cache/servers")
            .join(name);
        assert!(
            path.is_file(),
            "no test server at {}: run `make setup`",
            path.display()
        );
        path
    }
}

/// A running server that keeps nothing on disk and ends with this value, or with the test process however that ends.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    port: u16,
    arguments: Vec<String>,
    folder: TempDir,
    process: Process,
}

impl Server {
    /// A Valkey 9 with no limits and no password.
    ///
    /// # Panics
    /// If the binary is missing, with the command that gets it, or if the server doesn't answer.
    pub fn valkey() -> Self {
        Self::start(Kind::Valkey, &[])
    }

    /// A Redis 6.2 with no limits and no password.
    ///
    /// # Panics
    /// If the binary is missing, with the command that gets it, or if the server doesn't answer.
    pub fn redis() -> Self {
        Self::start(Kind::Redis, &[])
    }

    fn start(kind: Kind, arguments: &[&str]) -> Self {
        let folder =
            TempDir::with_prefix("tallylock-server-").expect("a private folder for the server");
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        for _ in 0..PORT_ATTEMPTS {
            let port = free_port();
            let mut process = Process::spawn(&kind.binary(), port, folder.path(), &arguments);
            if process.answers(port, folder.path()) {
                return Self {
                    kind,
                    port,
                    arguments,
                    folder,
                    process,
                };
            }
        }
        panic!("{kind:?} found no free port in {PORT_ATTEMPTS} attempts");
    }

    /// Which server this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `redis://127.0.0.1:port`, without a password even if the server wants one.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// The Unix socket on which the server listens too.
    pub fn unix_socket(&self) -> PathBuf {
        unix_socket(self.folder.path())
    }

    /// A plain redis-rs connection, for looking at the server behind the back of the code under test.
    ///
    /// # Panics
    /// If the server can't be reached or wants a password.
    pub fn connection(&self) -> redis::Connection {
        redis::Client::open(self.url())
            .and_then(|client| client.get_connection())
            .expect("a connection to the test server")
    }

    /// Stops the server's clock: connections stay open and nothing answers, until [`resume`](Self::resume).
    ///
    /// # Panics
    /// If the server is gone.
    pub fn pause(&self) {
        kill_process(self.process.server, Signal::STOP).expect("the server to pause");
    }

    /// Lets a paused server run on; it then executes whatever its sockets have received.
    ///
    /// # Panics
    /// If the server is gone.
    pub fn resume(&self) {
        kill_process(self.process.server, Signal::CONT).expect("the server to resume");
    }

    /// Kills the server and starts an empty one on the same port: its keys and its loaded scripts are gone.
    ///
    /// # Panics
    /// If the new server doesn't answer on that port.
    pub fn restart(&mut self) {
        self.process.kill();
        self.process = Process::spawn(
            &self.kind.binary(),
            self.port,
            self.folder.path(),
            &self.arguments,
        );
        assert!(
            self.process.answers(self.port, self.folder.path()),
            "port {} was taken while the server restarted",
            self.port
        );
    }
}

/// A server process under a shell that outlives neither it nor us.
#[derive(Debug)]
struct Process {
    /// The shell: it kills the server once its standard input ends, which happens however our process ends.
    shell: Child,
    server: Pid,
}

impl Process {
    fn spawn(binary: &Path, port: u16, folder: &Path, arguments: &[String]) -> Self {
        let output = File::create(output(folder)).expect("a file for the server's output");
        let mut shell = Command::new("sh")
            .args([
                "-c",
                r#"out=$1; shift; "$@" >>"$out" 2>&1 & echo $!; read -r _; kill -9 $!; wait"#,
                "sh",
            ])
            .arg(self::output(folder))
            .arg(binary)
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ])
            .args(["--daemonize", "no", "--databases", "16"])
            .arg("--dir")
            .arg(folder)
            .arg("--unixsocket")
            .arg(unix_socket(folder))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(output)
            // Ctrl-C goes to the terminal's process group: it ends us, and through the pipe the shell and the server.
            .process_group(0)
            .spawn()
            .expect("a shell to watch over the server");
        let mut line = String::new();
        BufReader::new(shell.stdout.take().expect("the shell's output"))
            .read_line(&mut line)
            .expect("the server's process id");
        let server = line
            .trim()
            .parse()
            .ok()
            .and_then(Pid::from_raw)
            .expect("the server's process id");
        Self { shell, server }
    }

    /// Waits for the first answer. False if the port was taken.
    fn answers(&mut self, port: u16, folder: &Path) -> bool {
        let deadline = Instant::now() + START_DEADLINE;
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).expect("a valid URL");
        loop {
            let log = std::fs::read_to_string(output(folder)).unwrap_or_default();
            // Asked before the connection: another server may be the one that answers on a taken port.
            if log.contains("Address already in use") {
                return false;
            }
            if log.contains("eady to accept connections") && speaks(&client) {
                return true;
            }
            assert!(
                Instant::now() < deadline && !self.is_gone(),
                "the server on port {port} doesn't answer; its output:\n{log}"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether the server has ended by itself, as one with a wrong argument does.
    fn is_gone(&self) -> bool {
        // A child that ended stays a zombie until the shell waits for it.
        std::fs::read_to_string(format!("/proc/{}/stat", self.server.as_raw_nonzero())).map_or(
            true,
            |stat| {
                stat.rsplit(") ")
                    .next()
                    .is_some_and(|rest| rest.starts_with('Z'))
            },
        )
    }

    fn kill(&mut self) {
        drop(self.shell.stdin.take());
        self.shell
            .wait()
            .expect("the shell to end after the server");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether a connection gets an answer; a server that wants a password answers as well.
fn speaks(client: &redis::Client) -> bool {
    match client.get_connection_with_timeout(Duration::from_secs(1)) {
        Ok(mut connection) => redis::cmd("PING")
            .exec(&mut connection)
            .map_or_else(|error| error.code() == Some("NOAUTH"), |()| true),
        Err(error) => error.code() == Some("NOAUTH"),
    }
}

fn unix_socket(folder: &Path) -> PathBuf {
    folder.join("server.sock")
}

fn output(folder: &Path) -> PathBuf {
    folder.join("output.log")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("the port's number").port()
}

/// Makes of one test two, `name::valkey` and `name::redis`, each with a fresh server of that kind:
///
/// ```no_run
/// # fn main() {}
/// use tallylock_testkit::{Server, on_each_server};
///
/// on_each_server! {
///     /// A server answers.
///     fn answers(server: Server) {
///         redis::cmd("PING").exec(&mut server.connection()).unwrap();
///     }
/// }
/// ```
#[macro_export]
macro_rules! on_each_server {
    ($($(#[$attribute:meta])* fn $name:ident($($server:tt)+) $body:block)+) => {$(
        $(#[$attribute])*
        mod $name {
            use super::*;

            fn on($($server)+) $body

            #[test]
            fn valkey() {
                on($crate::Kind::Valkey.start(&[]));
            }

            #[test]
            fn redis() {
                on($crate::Kind::Redis.start(&[]));
            }
        }
    )+};
}
