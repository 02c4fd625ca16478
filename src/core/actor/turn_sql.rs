//! The author's synchronous statements, within a turn.
//!
//! # Invariants
//!
//! 1. What the statements of a turn write is committed with everything else that the turn
//!    changed: whoever begins a commit takes the turn along.
//! 2. The turn holds the connection from its first statement to its end, or to the commit
//!    that takes it along; one that only reads gives it back at its end.
//! 3. Where nothing can be committed with it, as before a new actor is stored, the turn's
//!    end commits the statements alone.
//! 4. A turn that a statement ended is lost with all it changed: the generation breaks.
//! 5. What the machine changes by itself meanwhile goes with the turn, or behind its end.
//! 6. The turn is taken out of the machine while a statement runs, which is on the thread
//!    of the author's side, as is every commit that could miss it.

use std::sync::Arc;

use super::Actor;
use super::effect::{CommitOrigin, Effect, SaveOf, With};
use super::machine::Machine;
use crate::core::connections::Pending;
use crate::error::{Error, Result};
use crate::store::{Bindings, SqlCursor, SqlError, SqlTurn, Turn, WriteBatch, is_blank};

/// A turn that uses SQL.
pub(super) struct OpenTurn {
    file: Turn,
    statements: SqlTurn,
}

impl std::fmt::Debug for OpenTurn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenTurn").field("statements", &self.statements).finish_non_exhaustive()
    }
}

impl OpenTurn {
    /// What commits it.
    pub(super) fn into_file(self) -> Turn {
        self.file
    }
}

/// What a statement of a turn gave.
#[derive(Debug)]
pub struct RanInTurn {
    /// Its rows.
    pub cursor: SqlCursor,
    /// Whether the turn has written, so that its end has something to commit.
    pub wrote: bool,
}

impl Actor {
    /// Runs one statement, or without bindings a text of several, in the turn that is
    /// going on. Waits while the actor moves to a file of its own.
    pub(crate) fn run_in_turn(
        self: &Arc<Self>,
        sql: &str,
        bindings: &Bindings,
    ) -> Result<RanInTurn> {
        let named = |error: SqlError| Error::from(error).with_actor(self.identity.specifier());
        if is_blank(sql) {
            return Ok(RanInTurn { cursor: SqlCursor::empty(), wrote: false });
        }
        // Also refuses what comes after the generation has ended its statements.
        self.database().map_err(named)?;
        let (held, is_behind) = {
            let mut machine = self.machine.lock();
            if machine.rows_closed {
                return Err(named(SqlError::TransactionClosed));
            }
            let is_behind = machine.is_in_transaction();
            if is_behind && !machine.is_committing_transaction() {
                return Err(named(SqlError::TransactionOpen));
            }
            machine.sql_in_use = true;
            (machine.sql_turn.take(), is_behind)
        };
        let mut turn = match held {
            Some(turn) => turn,
            None => self.open_turn(is_behind).map_err(named)?,
        };
        let ran = turn.statements.run(&turn.file, sql, bindings);
        if turn.statements.is_lost() {
            drop(turn);
            let error = match ran {
                Err(error) => named(error),
                Ok(_) => Error::internal("a turn was lost without a word"),
            };
            self.break_generation(error.clone());
            return Err(error);
        }
        let wrote = turn.statements.is_writing();
        let orphan = {
            let mut machine = self.machine.lock();
            if machine.is_over() {
                Some(turn)
            } else {
                machine.sql_wrote = wrote;
                machine.sql_turn = Some(turn);
                None
            }
        };
        drop(orphan);
        Ok(RanInTurn { cursor: ran.map_err(named)?, wrote })
    }

    fn open_turn(&self, is_behind: bool) -> Result<OpenTurn, SqlError> {
        let generation = self.identity.generation;
        let file = match self.store.file() {
            Some(file) => file,
            // The moment for which the author's side has to wait for the disk.
            None => self.store.own_file_now(generation)?,
        };
        let file = if is_behind { file.turn_behind(generation)? } else { file.turn(generation)? };
        // The commit of a turn may be left to another thread (`mod.rs`, invariant 2): the
        // next turn then waits for that.
        file.share();
        Ok(OpenTurn { file, statements: SqlTurn::default() })
    }

    /// The turn has ended (invariants 2 and 3).
    pub(crate) fn end_sql_turn(self: &Arc<Self>) {
        self.step(|machine, _| {
            // The last save takes it along, too: alone it would be half of its turn.
            if machine.sql_wrote && (machine.may_save() || machine.last_save_comes()) {
                return;
            }
            machine.sql_in_use = false;
            let wrote = std::mem::take(&mut machine.sql_wrote);
            match machine.sql_turn.take() {
                Some(turn) if wrote && !machine.is_over() => machine.commit_turn_alone(turn),
                turn => machine.effects.extend(turn.map(Effect::EndTurn)),
            }
            // What the machine changed by itself meanwhile.
            machine.commit_own_rows();
        });
    }
}

impl Machine {
    /// See invariant 3.
    fn commit_turn_alone(&mut self, turn: OpenTurn) {
        let number = self.gate.begin(false);
        self.writes_in_flight += 1;
        let batch = WriteBatch {
            generation: self.generation(),
            ops: Vec::new(),
            alarm: None,
            fails_generation: true,
        };
        let origin = CommitOrigin {
            save: SaveOf::Rows,
            state: None,
            in_memory: true,
            connections: Pending::default(),
        };
        self.effects.push_back(Effect::Commit { number, batch, origin, with: With::Turn(turn) });
    }
}
