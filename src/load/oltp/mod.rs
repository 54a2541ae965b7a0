//! sysbench's OLTP set, statement by statement as in `oltp_common.lua` of sysbench 1.0.20. One event is one `transaction`.

mod statement;
mod table;

use rand::RngExt;

use self::statement::Verb;
pub(super) use self::table::Tables;
use super::LoadError;
use super::backend::{Access, Connection, Failure, Session, Value, transaction};
use super::distribution::Ids;
use super::random::{Purpose, Rng, digits, stream};
use super::workload::{Client, Workload};
use crate::plan::LoadRun;
use crate::spec::Distribution;

/// sysbench's `--range-size`.
const RANGE_SIZE: u32 = 100;

/// One of the scripts on loaded tables.
pub(super) struct Oltp {
    tables: Tables,
    event: &'static [(Verb, u32)],
    /// BEGIN and COMMIT around the event; `None` leaves every statement to itself.
    transaction: Option<Access>,
    ids: Ids,
    range: i64,
}

impl Oltp {
    /// The workload of `run`.
    pub(super) fn open(run: &LoadRun, connection: &mut dyn Connection) -> Result<Self, LoadError> {
        let ids = match run.workload.distribution {
            None | Some(Distribution::Uniform) => Ids::Uniform,
            Some(Distribution::Special) => Ids::Special,
            Some(Distribution::Zipfian | Distribution::Latest) => {
                let why = "distributions `zipfian` and `latest` are ones of ycsb workloads";
                return Err(LoadError::Job(why.into()));
            }
        };
        let tables = Tables::of(&run.dataset);
        tables.check(connection)?;
        let (event, transaction) = statement::event(run.workload.kind());
        Ok(Self {
            tables,
            event,
            transaction: transaction.filter(|_| !run.workload.skip_trx.unwrap_or(false)),
            ids,
            range: i64::from(run.workload.range_size.unwrap_or(RANGE_SIZE)),
        })
    }
}

impl Workload for Oltp {
    fn operations(&self) -> &'static [&'static str] {
        &["transaction"]
    }

    fn statements(&self) -> Vec<String> {
        let verbs = self.event.iter().flat_map(|(verb, _)| verb.statements());
        verbs
            .flat_map(|sql| (1..=self.tables.count).map(move |n| sql.replace('#', &n.to_string())))
            .collect()
    }

    fn client(&self, seed: u64, thread: u32) -> Box<dyn Client + '_> {
        Box::new(OltpClient {
            workload: self,
            rng: stream(seed, Purpose::Thread(thread)),
            c: Vec::new(),
            pad: Vec::new(),
        })
    }
}

/// One thread's random stream and text buffers.
struct OltpClient<'a> {
    workload: &'a Oltp,
    rng: Rng,
    c: Vec<u8>,
    pad: Vec<u8>,
}

impl Client for OltpClient<'_> {
    fn draw(&mut self) -> usize {
        0
    }

    fn execute(&mut self, session: &mut dyn Session) -> Result<(), Failure> {
        match self.workload.transaction {
            Some(access) => transaction(session, access, |session| self.event(session)),
            None => self.event(session),
        }
    }
}

impl OltpClient<'_> {
    /// All statements of an event. Each verb draws its table once, and an id for every time.
    fn event(&mut self, session: &mut dyn Session) -> Result<(), Failure> {
        let tables = self.workload.tables.count as usize;
        let mut first = 0;
        for (verb, times) in self.workload.event {
            let table = self.rng.random_range(0..tables);
            for _ in 0..*times {
                self.one(*verb, first + table, session)?;
            }
            first += verb.statements().len() * tables;
        }
        Ok(())
    }

    fn one(&mut self, verb: Verb, at: usize, session: &mut dyn Session) -> Result<(), Failure> {
        match verb {
            Verb::PointSelect => session.query(at, &[self.id()]).map(drop),
            Verb::SimpleRange | Verb::SumRange | Verb::OrderRange | Verb::DistinctRange => {
                let id = self.number();
                let last = id + self.workload.range - 1;
                let between = [Value::Integer(id), Value::Integer(last)];
                session.query(at, &between).map(drop)
            }
            Verb::IndexUpdate | Verb::Delete => session.execute(at, &[self.id()]).map(drop),
            Verb::NonIndexUpdate => {
                self.texts();
                let id = self.id();
                session.execute(at, &[Value::Text(&self.c), id]).map(drop)
            }
            Verb::DeleteInsert => {
                let (id, k) = (self.id(), self.id());
                self.texts();
                session.execute(at, &[id])?;
                let row = [id, k, Value::Text(&self.c), Value::Text(&self.pad)];
                let insert = at + self.workload.tables.count as usize;
                session.execute(insert, &row).map(drop)
            }
            Verb::Insert => {
                let k = self.id();
                self.texts();
                let row = [k, Value::Text(&self.c), Value::Text(&self.pad)];
                session.execute(at, &row).map(drop)
            }
        }
    }

    fn number(&mut self) -> i64 {
        let last = self.workload.tables.size;
        let id = self.workload.ids.draw(&mut self.rng, last);
        id.cast_signed()
    }

    fn id<'v>(&mut self) -> Value<'v> {
        Value::Integer(self.number())
    }

    fn texts(&mut self) {
        self.c.clear();
        digits(&mut self.rng, 10, &mut self.c);
        self.pad.clear();
        digits(&mut self.rng, 5, &mut self.pad);
    }
}

#[cfg(test)]
mod tests;
