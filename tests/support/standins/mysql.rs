//! MySQL's protocol, as far as the stand-ins speak it: packets, the greeting, and a client for short questions.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufStream};

use crate::Failure;

/// Asks for a statement's rows in text.
pub(crate) const COM_QUERY: u8 = 0x03;
pub(crate) const COM_STMT_PREPARE: u8 = 0x16;
/// The longest body of one packet; longer ones go on in the next.
pub(crate) const LONGEST: usize = 0xff_ffff;

const LONG_PASSWORD: u32 = 1;
const COMPRESS: u32 = 1 << 5;
const PROTOCOL_41: u32 = 1 << 9;
const SSL: u32 = 1 << 11;
const SECURE_CONNECTION: u32 = 1 << 15;
const PLUGIN_AUTH: u32 = 1 << 19;
const ZSTD: u32 = 1 << 26;

/// A packet: its sequence number and its body.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) sequence: u8,
    pub(crate) body: Vec<u8>,
}

impl Packet {
    /// Reads the next packet; `None` where the stream ends.
    pub(crate) async fn read<S: AsyncRead + Unpin>(
        stream: &mut S,
    ) -> std::io::Result<Option<Self>> {
        let mut head = [0; 4];
        if let Err(error) = stream.read_exact(&mut head).await {
            return if error.kind() == std::io::ErrorKind::UnexpectedEof {
                Ok(None)
            } else {
                Err(error)
            };
        }
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        Ok(Some(Self {
            sequence: head[3],
            body,
        }))
    }

    pub(crate) async fn write<S: AsyncWrite + Unpin>(&self, stream: &mut S) -> std::io::Result<()> {
        let length = u32::try_from(self.body.len())
            .unwrap_or(u32::MAX)
            .to_le_bytes();
        let mut bytes = Vec::with_capacity(self.body.len() + 4);
        bytes.extend([length[0], length[1], length[2], self.sequence]);
        bytes.extend(&self.body);
        stream.write_all(&bytes).await?;
        stream.flush().await
    }
}

/// The greeting with another server's version, with TLS or without, without compression and what only MariaDB has.
pub(crate) fn greeting_as(body: &[u8], version: &str, tls: bool) -> Option<Vec<u8>> {
    let end = body.iter().position(|byte| *byte == 0)?;
    let mut greeting = vec![body[0]];
    greeting.extend(version.as_bytes());
    let rest = greeting.len();
    greeting.extend(&body[end..]);
    // After the version: 0, thread 4, scramble 8, 0, capabilities 2, character set 1, status 2, capabilities 2, length 1, 10 more.
    let (low, high) = (rest + 14, rest + 19);
    let bytes = [
        *greeting.get(low)?,
        *greeting.get(low + 1)?,
        *greeting.get(high)?,
        *greeting.get(high + 1)?,
    ];
    let capabilities = (u32::from_le_bytes(bytes) | LONG_PASSWORD) & !(SSL | COMPRESS | ZSTD);
    let bytes = (capabilities | if tls { SSL } else { 0 }).to_le_bytes();
    greeting[low..low + 2].copy_from_slice(&bytes[..2]);
    greeting[high..high + 2].copy_from_slice(&bytes[2..]);
    greeting.get_mut(high + 3..high + 13)?.fill(0);
    Some(greeting)
}

/// Whether a client's first packet is the short one that asks for TLS.
pub(crate) fn asks_for_tls(body: &[u8]) -> bool {
    body.len() == 32
        && body
            .first_chunk()
            .is_some_and(|bytes| u32::from_le_bytes(*bytes) & SSL != 0)
}

/// Takes the wish for TLS out of a log-in.
pub(crate) fn without_tls(body: &mut [u8]) {
    if let Some(bytes) = body.first_chunk_mut() {
        *bytes = (u32::from_le_bytes(*bytes) & !SSL).to_le_bytes();
    }
}

/// The packet that refuses a client before or after its greeting.
pub(crate) fn error_packet(sequence: u8, code: u16, text: &str) -> Packet {
    let mut body = vec![0xff];
    body.extend(code.to_le_bytes());
    body.extend(b"#HY000");
    body.extend(text.as_bytes());
    Packet { sequence, body }
}

/// A client with an empty password.
pub(crate) struct Client<S>(BufStream<S>);

/// A row of text.
pub(crate) type Row = Vec<Option<String>>;

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) async fn connect(stream: S, user: &str) -> Result<Self, Failure> {
        let mut stream = BufStream::new(stream);
        let greeting = Packet::read(&mut stream)
            .await?
            .ok_or("the server hung up")?;
        if greeting.body.first() == Some(&0xff) {
            return Err(error_text(&greeting.body).into());
        }
        let capabilities = LONG_PASSWORD | PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;
        let mut body = capabilities.to_le_bytes().to_vec();
        body.extend((LONGEST as u32).to_le_bytes());
        body.push(45); // utf8mb4
        body.extend([0; 23]);
        body.extend(user.as_bytes());
        body.extend([0, 0]);
        body.extend(b"mysql_native_password\0");
        let mut client = Self(stream);
        client
            .send(Packet {
                sequence: greeting.sequence + 1,
                body,
            })
            .await?;
        let mut answer = client.receive().await?;
        if answer.body.first() == Some(&0xfe) {
            client
                .send(Packet {
                    sequence: answer.sequence + 1,
                    body: Vec::new(),
                })
                .await?;
            answer = client.receive().await?;
        }
        match answer.body.first() {
            Some(0) => Ok(client),
            _ => Err(error_text(&answer.body).into()),
        }
    }

    /// Runs a statement and returns its rows.
    pub(crate) async fn query(&mut self, statement: &str) -> Result<Vec<Row>, Failure> {
        let mut body = vec![COM_QUERY];
        body.extend(statement.as_bytes());
        self.send(Packet { sequence: 0, body }).await?;
        let head = self.receive().await?;
        match head.body.first() {
            Some(0xff) => return Err(error_text(&head.body).into()),
            Some(0) => return Ok(Vec::new()),
            _ => {}
        }
        while !is_end(&self.receive().await?.body) {}
        let mut rows = Vec::new();
        loop {
            let packet = self.receive().await?;
            match packet.body.first() {
                Some(0xff) => return Err(error_text(&packet.body).into()),
                _ if is_end(&packet.body) => return Ok(rows),
                _ => rows.push(row(&packet.body)),
            }
        }
    }

    async fn send(&mut self, packet: Packet) -> Result<(), Failure> {
        packet.write(&mut self.0).await?;
        Ok(self.0.flush().await?)
    }

    async fn receive(&mut self) -> Result<Packet, Failure> {
        Ok(Packet::read(&mut self.0)
            .await?
            .ok_or("the server hung up")?)
    }
}

fn is_end(body: &[u8]) -> bool {
    body.len() < 9 && body.first() == Some(&0xfe)
}

fn error_text(body: &[u8]) -> String {
    let text = body.get(3..).unwrap_or_default();
    let text = if text.first() == Some(&b'#') {
        text.get(6..).unwrap_or_default()
    } else {
        text
    };
    String::from_utf8_lossy(text).into_owned()
}

fn row(mut body: &[u8]) -> Row {
    let mut values = Vec::new();
    while let Some((&first, rest)) = body.split_first() {
        let (length, skip) = match first {
            0xfb => {
                values.push(None);
                body = rest;
                continue;
            }
            0xfc => (little(rest, 2), 2),
            0xfd => (little(rest, 3), 3),
            0xfe => (little(rest, 8), 8),
            short => (usize::from(short), 0),
        };
        let end = (skip + length).min(rest.len());
        values.push(Some(
            String::from_utf8_lossy(&rest[skip.min(end)..end]).into_owned(),
        ));
        body = &rest[end..];
    }
    values
}

fn little(bytes: &[u8], count: usize) -> usize {
    bytes
        .iter()
        .take(count)
        .rev()
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}
