//! Rebuilds a disk from what a process was recorded to do, as a loss of power at some
//! moment would have left it.
//!
//! What was synced is there. Of the rest nothing, everything, or any part is: bytes in
//! sectors of 512, lengths, and names.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use rand::Rng;
use rand::rngs::StdRng;

const SECTOR: u64 = 512;

/// One thing that the process did.
pub enum Did {
    Open { fd: u64, path: PathBuf, new: bool, emptied: bool },
    Close { fd: u64 },
    Write { fd: u64, offset: u64, bytes: Vec<u8> },
    Truncate { fd: u64, length: u64 },
    Sync { fd: u64, before: u64 },
    Unlink { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf },
    Link { from: PathBuf, to: PathBuf },
}

/// Reads what the recorder wrote.
pub fn read(log: &Path) -> Vec<Did> {
    let bytes = fs::read(log).unwrap();
    let mut at = 0;
    let mut all = Vec::new();
    while at + 40 <= bytes.len() {
        let number = |n: usize| {
            let from = at + 8 * n;
            u64::from_ne_bytes(bytes[from..from + 8].try_into().unwrap())
        };
        let [kind, a, b, c, length] = [0, 1, 2, 3, 4].map(number);
        let data = &bytes[at + 40..at + 40 + usize::try_from(length).unwrap()];
        at += 40 + data.len();
        let path = |data: &[u8]| PathBuf::from(std::str::from_utf8(data).unwrap());
        all.push(match kind {
            1 => Did::Open { fd: a, path: path(data), new: b != 0, emptied: c != 0 },
            2 => Did::Close { fd: a },
            3 => Did::Write { fd: a, offset: b, bytes: data.to_vec() },
            4 => Did::Truncate { fd: a, length: b },
            5 => Did::Sync { fd: a, before: b },
            6 => Did::Unlink { path: path(data) },
            7 | 8 => {
                let zero = data.iter().position(|&byte| byte == 0).unwrap();
                let (from, to) = (path(&data[..zero]), path(&data[zero + 1..]));
                if kind == 7 { Did::Rename { from, to } } else { Did::Link { from, to } }
            }
            other => panic!("record of kind {other}"),
        });
    }
    all
}

/// How much of what was not synced is there after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    Nothing,
    Everything,
    /// Each part with one chance in two.
    Any,
}

type FileNumber = usize;

#[derive(Clone)]
enum Change {
    Bytes { offset: u64, bytes: Vec<u8> },
    Length(u64),
}

#[derive(Clone)]
enum Naming {
    Create(PathBuf, FileNumber),
    Remove(PathBuf),
    Move(PathBuf, PathBuf, FileNumber),
}

#[derive(Default)]
struct FileOnDisk {
    durable: Vec<u8>,
    pending: Vec<(u64, Change)>,
}

/// The disk at one moment of the record.
#[derive(Default)]
pub struct Disk {
    done: u64,
    files: Vec<FileOnDisk>,
    /// Names as the process sees them, and as they are on the disk.
    seen: BTreeMap<PathBuf, FileNumber>,
    durable: BTreeMap<PathBuf, FileNumber>,
    pending: Vec<(u64, Naming)>,
    descriptors: HashMap<u64, Described>,
}

enum Described {
    File(FileNumber),
    Folder(PathBuf),
}

impl Disk {
    /// Goes on by one record.
    pub fn step(&mut self, did: &Did) {
        let now = self.done;
        self.done += 1;
        match did {
            Did::Open { fd, path, new, emptied } => {
                if *new && !self.seen.contains_key(path) {
                    self.files.push(FileOnDisk::default());
                    let number = self.files.len() - 1;
                    self.seen.insert(path.clone(), number);
                    self.pending.push((now, Naming::Create(path.clone(), number)));
                }
                let described = match self.seen.get(path) {
                    Some(&number) => {
                        if *emptied {
                            self.files[number].pending.push((now, Change::Length(0)));
                        }
                        Described::File(number)
                    }
                    None => Described::Folder(path.clone()),
                };
                self.descriptors.insert(*fd, described);
            }
            Did::Close { fd } => {
                self.descriptors.remove(fd);
            }
            Did::Write { fd, offset, bytes } => {
                let change = Change::Bytes { offset: *offset, bytes: bytes.clone() };
                self.file(*fd).pending.push((now, change));
            }
            Did::Truncate { fd, length } => {
                self.file(*fd).pending.push((now, Change::Length(*length)));
            }
            Did::Sync { fd, before } => self.sync(*fd, *before),
            Did::Unlink { path } => {
                self.seen.remove(path);
                self.pending.push((now, Naming::Remove(path.clone())));
            }
            Did::Rename { from, to } => {
                let number = self.seen.remove(from).expect("it has a name");
                self.seen.insert(to.clone(), number);
                self.pending.push((now, Naming::Move(from.clone(), to.clone(), number)));
            }
            Did::Link { from, to } => {
                let number = self.seen[from];
                self.seen.insert(to.clone(), number);
                self.pending.push((now, Naming::Create(to.clone(), number)));
            }
        }
    }

    fn file(&mut self, fd: u64) -> &mut FileOnDisk {
        match self.descriptors.get(&fd) {
            Some(Described::File(number)) => &mut self.files[*number],
            _ => panic!("descriptor {fd} is no file"),
        }
    }

    fn sync(&mut self, fd: u64, before: u64) {
        match self.descriptors.get(&fd) {
            Some(Described::File(number)) => {
                let file = &mut self.files[*number];
                let cut = file.pending.partition_point(|(at, _)| *at < before);
                for (_, change) in file.pending.drain(..cut) {
                    apply(&mut file.durable, &change);
                }
            }
            Some(Described::Folder(folder)) => {
                let folder = folder.clone();
                let (synced, pending) = self
                    .pending
                    .drain(..)
                    .partition::<Vec<_>, _>(|(at, naming)| *at < before && naming.is_in(&folder));
                self.pending = pending;
                for (_, naming) in synced {
                    naming.apply(&mut self.durable);
                }
            }
            // Closed by another thread while it was synced.
            None => {}
        }
    }

    /// Writes what a loss at this moment leaves into `to`, in place of `from`.
    pub fn lose(&self, from: &Path, to: &Path, rest: Rest, chance: &mut StdRng) {
        let mut names = self.durable.clone();
        for (_, naming) in &self.pending {
            if rest.keeps(chance) {
                naming.apply(&mut names);
            }
        }
        for (path, number) in names {
            // SQLite makes its index anew.
            if path.to_str().unwrap().ends_with("-shm") {
                continue;
            }
            let file = &self.files[number];
            let mut bytes = file.durable.clone();
            for (_, change) in &file.pending {
                for part in change.parts() {
                    if rest.keeps(chance) {
                        apply(&mut bytes, &part);
                    }
                }
            }
            let path = to.join(path.strip_prefix(from).unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }

    /// What the process has written into a file so far, synced or not.
    pub fn written(&self, path: &Path) -> Vec<u8> {
        let Some(&number) = self.seen.get(path) else { return Vec::new() };
        let mut bytes = self.files[number].durable.clone();
        for (_, change) in &self.files[number].pending {
            apply(&mut bytes, change);
        }
        bytes
    }
}

impl Rest {
    fn keeps(self, chance: &mut StdRng) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Any => chance.random_bool(0.5),
        }
    }
}

impl Naming {
    fn is_in(&self, folder: &Path) -> bool {
        let (Self::Create(path, _) | Self::Remove(path) | Self::Move(path, _, _)) = self;
        path.parent() == Some(folder)
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, FileNumber>) {
        match self {
            Self::Create(path, number) => {
                names.insert(path.clone(), *number);
            }
            Self::Remove(path) => {
                names.remove(path);
            }
            Self::Move(from, to, number) => {
                names.remove(from);
                names.insert(to.clone(), *number);
            }
        }
    }
}

impl Change {
    /// What of it may be on the disk without the rest.
    fn parts(&self) -> Vec<Self> {
        let Self::Bytes { offset, bytes } = self else { return vec![self.clone()] };
        let mut parts = Vec::new();
        let (mut at, mut left) = (*offset, &bytes[..]);
        while !left.is_empty() {
            let to_border = usize::try_from(SECTOR - at % SECTOR).unwrap();
            let (part, behind) = left.split_at(to_border.min(left.len()));
            parts.push(Self::Bytes { offset: at, bytes: part.to_vec() });
            at += part.len() as u64;
            left = behind;
        }
        parts
    }
}

fn apply(file: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Bytes { offset, bytes } => {
            let from = usize::try_from(*offset).unwrap();
            let to = from + bytes.len();
            if file.len() < to {
                file.resize(to, 0);
            }
            file[from..to].copy_from_slice(bytes);
        }
        Change::Length(length) => file.resize(usize::try_from(*length).unwrap(), 0),
    }
}
