package jsonl

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A session is deleted with all that is its own and nothing else, whatever is
// wrong with its log; what may be somebody else's too is left alone.
func TestDelete(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		refused := map[dsh.SessionID]string{
			"flat":  "is not in a directory of its own",
			"twice": "are the same session",
		}
		y := newYard(t, e).fill()
		for id := range y.want {
			before := traces(t, y.root)
			claims, err := y.claims(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			dir := claims[0].dir()
			err = y.Delete(t.Context(), id)
			if why := refused[id]; why != "" {
				if err == nil || !strings.Contains(err.Error(), why) {
					t.Errorf("%s: %v", id, err)
				}
				unchanged(t, y.root, before)
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", id, err)
			}
			if _, err := y.Check(t.Context(), id); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("%s is there: %v", id, err)
			}
			after := traces(t, y.root)
			for path, was := range before {
				is, there := after[path]
				own := path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
				if there == own || there && !is.mode.IsDir() && is != was {
					t.Errorf("%s: %s is there: %v", id, path, there)
				}
			}
			if len(after) > len(before) {
				t.Errorf("%s: something was made: %v", id, after)
			}
		}
		if err := y.Delete(t.Context(), "sound"); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("again: %v", err)
		}
		log, err := y.Create(t.Context(), header("sound"))
		if err == nil {
			err = errors.Join(log.Append(t.Context(), session.Fence{Epoch: log.Epoch()}, []dsh.Event{{Data: dsh.TurnStart{Turn: 1}}}), log.Close())
		}
		if err != nil {
			t.Errorf("the ID is not free: %v", err)
		}
	})
}

// What somebody has is not deleted, nor what holds files of somebody else.
func TestDeleteRefuses(t *testing.T) {
	y := newYard(t, Zstd).fill()
	log, err := y.Open(t.Context(), "sound")
	if err != nil {
		t.Fatal(err)
	}
	made, err := y.Create(t.Context(), header("made"))
	if err != nil {
		t.Fatal(err)
	}
	mine := y.put("--srv-demo--/open/notes.txt", []byte("mine"))
	before := traces(t, y.root)
	for _, id := range []dsh.SessionID{"sound", "made"} {
		var used *InUseError
		if err := y.Delete(t.Context(), id); !errors.As(err, &used) || used.Holder.PID != os.Getpid() {
			t.Errorf("%s: %v", id, err)
		}
	}
	unchanged(t, y.root, before)
	if err := y.Delete(t.Context(), "open"); err == nil || !strings.Contains(err.Error(), mine+" is no part of a session") {
		t.Errorf("with a file of somebody else: %v", err)
	}
	if _, err := y.OpenReader(t.Context(), "open"); err != nil {
		t.Error(err)
	}
	if err := errors.Join(log.Close(), made.Close(), y.Delete(t.Context(), "sound")); err != nil {
		t.Error(err)
	}
}

// Whatever fails, the log is whole or gone, and its name is free then.
func TestDeleteFaults(t *testing.T) {
	for from := int64(0); ; from++ {
		y := newYard(t, Zstd).fill()
		disk := &badDisk{from: from, count: 1, err: syscall.EIO}
		y.disk, y.syncer.disk = disk, disk
		err := y.Delete(t.Context(), "kept")
		failed := disk.done.Load() > from
		if failed != errors.Is(err, syscall.EIO) || !failed && err != nil {
			t.Fatalf("operation %d: %v", from, err)
		}
		y.disk, y.syncer.disk = osDisk{}, osDisk{}
		r, err := y.Check(t.Context(), "kept")
		switch {
		case err == nil && r.Verdict == Sound && r.Holder == nil:
			if err := y.Delete(t.Context(), "kept"); err != nil {
				t.Errorf("operation %d, again: %v", from, err)
			}
		case !errors.Is(err, session.ErrNotFound):
			t.Errorf("operation %d: %+v, %v", from, r, err)
		}
		first, _, _ := twoTurns()
		path := y.log("kept", Sound, y.file("kept", first))
		if log, err := y.Open(t.Context(), "kept"); err != nil {
			t.Errorf("operation %d: %s is not free: %v", from, path, err)
		} else if err := log.Close(); err != nil {
			t.Error(err)
		}
		if !failed {
			break
		}
	}
}

// Who knew of a session's children does not find one that was deleted.
func TestDeletedChild(t *testing.T) {
	y := newYard(t, Zstd)
	child := header("child")
	child.ParentSession = "parent"
	y.put("--srv-demo--/child/"+y.box.name(), y.box.wrap(nil, append(child.AppendJSON(nil), '\n')))
	children := func() (ids []dsh.SessionID) {
		for h, err := range y.Children(t.Context(), "parent") {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, h.ID)
		}
		return ids
	}
	if ids := children(); !slices.Equal(ids, []dsh.SessionID{"child"}) {
		t.Fatal(ids)
	}
	if err := y.Delete(t.Context(), "child"); err != nil {
		t.Fatal(err)
	}
	if ids := children(); len(ids) > 0 {
		t.Error(ids)
	}
}
