"""Programs in Node and Go record with `outbox_record`, and a relay delivers what they recorded."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT, blocks
from tests.servers.availability import available
from tests.servers.debian import GO, GO_PQ, NODE, NPM

BOUND = 300.0
PAGE = ROOT / "docs/how-to/plain-sql-producers.md"
PAYLOAD = {"id": 42, "path": "C:\\temp\\new\\bin", "quote": 'it\'s "quoted"', "line": "a\nb", "text": "ß🎉"}

NODE_PROGRAM = """
const { Client } = require("pg");

async function main() {
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  const payload = JSON.parse(process.env.PAYLOAD);
  await client.query("BEGIN");
  await client.query("SELECT outbox_record($1, $2, key => $3)", ["order.placed", JSON.stringify(payload), "order-42"]);
  // node-postgres encodes an object as JSON by itself.
  await client.query("SELECT outbox_record($1, $2, key => $3)", ["order.paid", payload, "order-42"]);
  await client.query("SAVEPOINT before");
  try {
    // The driver encodes an array as an array of PostgreSQL, which is not JSON.
    await client.query("SELECT outbox_record($1, $2)", ["order.broken", [1, 2]]);
    throw new Error("not rejected");
  } catch (error) {
    if (error.code !== "22P02") throw error;
    await client.query("ROLLBACK TO before");
  }
  await client.query("COMMIT");
  await client.query("BEGIN");
  await client.query("SELECT outbox_record('order.never', '{}')");
  await client.query("ROLLBACK");
  await client.query("CREATE TABLE orders (id integer)");
  // The page.
  await client.end();
}

main().catch((error) => { console.error(error); process.exit(1); });
"""

GO_PROGRAM = """
package main

import (
	"database/sql"
	"encoding/json"
	"log"
	"os"

	_ "github.com/lib/pq"
)

func main() {
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL")+"?sslmode=disable")
	check(err)
	var payload map[string]interface{}
	check(json.Unmarshal([]byte(os.Getenv("PAYLOAD")), &payload))
	encoded, err := json.Marshal(payload)
	check(err)
	tx, err := db.Begin()
	check(err)
	var id string
	check(tx.QueryRow("SELECT outbox_record($1, $2, key => $3)", "order.placed", string(encoded), "order-42").Scan(&id))
	check(tx.QueryRow("SELECT outbox_record($1, $2::jsonb, key => $3)", "order.paid", encoded, "order-42").Scan(&id))
	check(tx.Commit())
	tx, err = db.Begin()
	check(err)
	check(tx.QueryRow("SELECT outbox_record('order.never', '{}')").Scan(&id))
	check(tx.Rollback())
	_, err = db.Exec("CREATE TABLE orders (id integer)")
	check(err)
	page(db)
}

func page(db *sql.DB) {
	// The page.
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
"""


def run(command: list[str], folder: Path, **variables: str) -> str:
    ran = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def delivered(url: str, folder: Path) -> list[tuple[str, str, object]]:
    """Type, key and payload of what a relay delivers, in order."""
    output = run(
        [sys.executable, "-m", "pillarbox", "relay", "--until-empty"],
        folder,
        PILLARBOX_STORE=url,
        PILLARBOX_TRANSPORT="stdout://",
    )
    messages = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [(message["event_type"], message["key"], message["payload"]) for message in messages]


def test_a_node_program_records_and_a_relay_delivers(postgres_url: str, tmp_path: Path) -> None:
    run([available(NPM.path), "install", "--no-audit", "--no-fund", "pg@8"], tmp_path)
    [shown] = blocks(PAGE, "js")
    (tmp_path / "record.js").write_text(NODE_PROGRAM.replace("// The page.", shown), encoding="utf-8")
    run([available(NODE.path), "record.js"], tmp_path, DATABASE_URL=postgres_url, PAYLOAD=json.dumps(PAYLOAD))
    assert delivered(postgres_url, tmp_path) == [
        ("order.placed", "order-42", PAYLOAD),
        ("order.paid", "order-42", PAYLOAD),
        ("order.placed", "order-42", {"id": 42}),
    ]


def test_a_go_program_records_and_a_relay_delivers(postgres_url: str, tmp_path: Path) -> None:
    gopath = Path(available(GO_PQ.path)).parents[3]
    [shown] = blocks(PAGE, "go")
    (tmp_path / "record.go").write_text(GO_PROGRAM.replace("// The page.", shown), encoding="utf-8")
    variables = {"GO111MODULE": "off", "GOPATH": str(gopath), "GOFLAGS": "", "GOTOOLCHAIN": "local"}
    run([available(GO.path), "build", "-o", "record", "record.go"], tmp_path, **variables)
    run([str(tmp_path / "record")], tmp_path, DATABASE_URL=postgres_url, PAYLOAD=json.dumps(PAYLOAD))
    assert delivered(postgres_url, tmp_path) == [
        ("order.placed", "order-42", PAYLOAD),
        ("order.paid", "order-42", PAYLOAD),
        ("order.placed", "order-42", {"id": 42}),
    ]
