use super::super::connection::Database;
use super::super::schema;
use super::*;

const ACTOR: ActorNumber = ActorNumber(7);

fn database() -> Connection {
    let sqlite = Connection::open_in_memory().unwrap();
    schema::migrate(&sqlite, &Database::Memory, schema::MIGRATIONS).unwrap();
    sqlite
}

fn stored(id: &str) -> StoredConnection {
    StoredConnection {
        id: id.to_owned(),
        params: Bytes::from_static(b"params"),
        state: Bytes::new(),
        subscriptions: vec!["a".into(), "b".into()],
        socket: SocketId { gateway: [1, 2, 3, 4], request: [5, 6, 7, 8] },
        server_index: u16::MAX,
        client_index: 1,
        path: "/connect?x=1".into(),
        headers: vec![("host".into(), "here".into())],
    }
}

fn put(sqlite: &Connection, connection: &StoredConnection) {
    apply(sqlite, ACTOR, &ConnectionOp::Put(Box::new(connection.clone()))).unwrap();
}

fn rows(sqlite: &Connection, table: &str) -> i64 {
    sqlite.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[test]
fn a_connection_is_read_as_it_was_stored_and_in_the_order_of_ids() {
    let sqlite = database();

    put(&sqlite, &stored("2"));
    put(&sqlite, &stored("1"));

    assert_eq!(load(&sqlite, ACTOR).unwrap(), [stored("1"), stored("2")]);
    assert_eq!(load(&sqlite, ActorNumber(8)).unwrap(), []);
}

#[test]
fn storing_again_changes_what_can_change_and_nothing_else() {
    let sqlite = database();
    put(&sqlite, &stored("1"));
    let changed = StoredConnection {
        state: Bytes::from_static(b"s"),
        subscriptions: Vec::new(),
        server_index: 0,
        client_index: 2,
        ..stored("1")
    };

    put(
        &sqlite,
        &StoredConnection { params: Bytes::new(), path: String::new(), ..changed.clone() },
    );

    assert_eq!(load(&sqlite, ACTOR).unwrap(), [changed]);
}

#[test]
fn a_removed_connection_leaves_no_row() {
    let sqlite = database();
    put(&sqlite, &stored("1"));

    apply(&sqlite, ACTOR, &ConnectionOp::Delete("1".into())).unwrap();
    apply(&sqlite, ACTOR, &ConnectionOp::Delete("1".into())).unwrap();

    assert_eq!((rows(&sqlite, "_gr_conns"), rows(&sqlite, "_gr_conn_state")), (0, 0));
}
