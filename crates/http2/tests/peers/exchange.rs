//! Exchanges that a client and a server play, each from the same list.

use weir_testkit::Random;

pub type Fields = Vec<(String, String)>;

/// What a message has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub fields: Fields,
    pub body: Vec<u8>,
    pub trailers: Option<Fields>,
}

/// A request and its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub method: String,
    pub request: Message,
    pub status: u16,
    pub has_interim: bool,
    pub answer: Message,
    /// The client gives it up as soon as the answer's head has come.
    pub is_cancelled: bool,
    /// The server refuses it as soon as its head has come.
    pub is_refused: bool,
}

impl Exchange {
    /// The path that names the exchange of this number.
    pub fn path(number: usize) -> String {
        format!("/exchange/{number}")
    }

    /// Whether one of the two does not play it to its end.
    pub fn is_cut(&self) -> bool {
        self.is_cancelled || self.is_refused
    }

    /// Whether the answer may have a body.
    fn may_have_body(&self) -> bool {
        self.method != "HEAD" && !matches!(self.status, 204 | 304)
    }
}

/// Some exchanges; streams, windows and heads of all sizes.
pub fn exchanges(random: &mut Random) -> Vec<Exchange> {
    (0..1 + random.below(24)).map(|_| exchange(random)).collect()
}

fn exchange(random: &mut Random) -> Exchange {
    let method = random.choose(&["GET", "HEAD", "POST", "POST", "PUT", "DELETE", "OPTIONS"]).to_owned();
    let has_body = matches!(&*method, "POST" | "PUT");
    let mut exchange = Exchange {
        request: message(random, has_body),
        method,
        status: [200, 200, 200, 204, 304, 404, 500][random.below(7)],
        has_interim: random.percent(15),
        answer: Message::default(),
        is_cancelled: random.percent(8),
        is_refused: random.percent(4),
    };
    exchange.answer = message(random, exchange.may_have_body());
    exchange
}

fn message(random: &mut Random, has_body: bool) -> Message {
    let mut message = Message { fields: fields(random), ..Message::default() };
    if has_body {
        let length = match random.below(6) {
            0 => 0,
            1 => 1,
            2 | 3 => random.below(1000),
            4 => random.below(40_000),
            _ => random.below(200_000),
        };
        message.body = (0..length).map(|i| (i * 7 + i / 251) as u8).collect();
        message.trailers = random.percent(30).then(|| fields(random)).filter(|fields| !fields.is_empty());
        if random.percent(20) {
            message.fields.push(("content-length".into(), length.to_string()));
        }
    }
    message
}

/// Fields that repeat and fields that do not, short and long.
fn fields(random: &mut Random) -> Fields {
    let mut fields = Fields::new();
    for i in 0..random.below(6) {
        let (name, value) = match random.below(6) {
            0 => ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36".to_owned()),
            1 => ("x-request-id", format!("{:016x}", random.bits())),
            2 => ("authorization", format!("Bearer {i}")),
            3 => ("x-long", "long ".repeat(random.below(60)) + "!"),
            4 => ("cache-control", "private, max-age=0".to_owned()),
            _ => ("x-kept", random.choose(&["a", "b", "", "\u{e9}t\u{e9}"]).to_owned()),
        };
        // One of each name, so that no order among them is lost.
        if !fields.iter().any(|(known, _)| known == name) {
            fields.push((name.to_owned(), value));
        }
    }
    fields
}
