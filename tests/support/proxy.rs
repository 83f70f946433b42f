//! A socket between the program and the server, to hold back or change what goes to the server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

/// Passes everything on, but what `edit` is told to touch.
pub struct Proxy {
    folder: tempfile::TempDir,
    hold: watch::Sender<bool>,
    open: Arc<AtomicUsize>,
    caught: watch::Receiver<usize>,
}

impl Proxy {
    /// Stands before the server of that socket. Requests that hold `word` wait while [`Proxy::hold`] is
    /// on, and then go through `edit`.
    pub fn before(socket: PathBuf, word: &'static [u8], edit: fn(&mut [u8])) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("a socket");
        let open = Arc::new(AtomicUsize::new(0));
        let (hold, held) = watch::channel(false);
        let (catch, caught) = watch::channel(0);
        let catch = Arc::new(catch);
        let count = open.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = UnixStream::connect(&socket).await else { continue };
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
                let (mut held, count, catch) = (held.clone(), count.clone(), catch.clone());
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let mut buffer = vec![0; 65_536];
                    while let Ok(n @ 1..) = from_client.read(&mut buffer).await {
                        let bytes = &mut buffer[..n];
                        if bytes.windows(word.len()).any(|w| w == word) {
                            catch.send_modify(|n| *n += 1);
                            if held.wait_for(|held| !held).await.is_err() {
                                break;
                            }
                            edit(bytes);
                        }
                        if to_server.write_all(bytes).await.is_err() {
                            break;
                        }
                    }
                    count.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { folder, hold, open, caught }
    }

    /// Where to connect, in key=value form.
    pub fn conninfo(&self, dbname: &str) -> String {
        format!("host={} port=5432 user=postgres dbname={dbname}", self.folder.path().display())
    }

    /// Holds requests with the word back, or lets them go.
    pub fn hold(&self, on: bool) {
        self.hold.send_replace(on);
    }

    /// Waits until that many requests with the word have come.
    pub async fn caught(&self, n: usize) {
        self.caught.clone().wait_for(|caught| *caught >= n).await.expect("the proxy lives");
    }

    /// Connections that the program holds open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}
