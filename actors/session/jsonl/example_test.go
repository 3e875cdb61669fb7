package jsonl_test

import (
	"context"
	"fmt"
	"os"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A log is written, closed, found in the list and read again.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	store, err := jsonl.Open(dir, jsonl.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	log, err := store.Create(ctx, dsh.SessionHeader{ID: "main-session-1", CreatedAt: 1_790_000_000_000, CWD: "/srv/demo"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = session.Extend(ctx, log, []dsh.Event{
		{Seq: 0, Data: dsh.TurnStart{Turn: 1}},
		{Seq: 1, Data: dsh.TurnEnd{Turn: 1, Reason: dsh.Ending{Kind: dsh.EndCompleted}}},
	})
	if err == nil {
		err = log.Sync(ctx) // nothing is lost from here on
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	_, err = store.Open(ctx, "main-session-1")
	fmt.Println("in use:", err != nil)
	_ = log.Close()

	for header, err := range store.List(ctx) {
		fmt.Println("listed:", header.ID, err)
	}
	reader, err := store.OpenReader(ctx, "main-session-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	events, err := reader.Read(ctx, 0, 0)
	fmt.Println("read:", len(events), events[0].Type(), err)
	// Output:
	// in use: true
	// listed: main-session-1 <nil>
	// read: 2 turn/start <nil>
}
