package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/archive"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

const exportLong = `Write a session as one JSON document that does not depend on how it is stored.

docs/export.md describes the document; 'sessions import' reads it. It holds all
that was said in the session, and the arguments and results of all tools.

A session that is in use can be exported: the document holds what was written so
far. What a crash left of the last write is not in it; continue or repair the
session first to have what can be read of that.`

func (a *app) sessionsExportCommand(f *sessionsFlags) *cobra.Command {
	var tree bool
	var file string
	cmd := &cobra.Command{
		Use:               "export ID",
		Short:             "Write a session as one JSON document",
		Long:              exportLong,
		Example:           "  dsh-actor sessions export agent-3f2a -o session.json\n  dsh-actor sessions export agent-3f2a --tree | gzip > tree.json.gz",
		Args:              oneSession,
		ValidArgsFunction: a.completeSession(&f.dir, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, id, err := a.session(cmd.Context(), f, findLog, args[0])
			if err != nil {
				return err
			}
			x := &exporting{app: a, store: store, dir: f.dir}
			if file == "" || file == "-" {
				return failed(x.export(cmd.Context(), a.stdout, id, tree))
			}
			return failed(writeFile(file, func(w io.Writer) error { return x.export(cmd.Context(), w, id, tree) }))
		},
	}
	cmd.Flags().BoolVar(&tree, "tree", false, "the session and all its sub-agents'")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to `FILE` (default: standard output)")
	return cmd
}

// exporting writes sessions of a store.
type exporting struct {
	app   *app
	store *jsonl.Store
	dir   string
}

func (x *exporting) export(ctx context.Context, w io.Writer, id dsh.SessionID, tree bool) error {
	if !tree {
		log, err := x.open(ctx, id)
		if err != nil {
			return err
		}
		return errors.Join(archive.Export(ctx, w, log), log.Close())
	}
	ids, err := archive.Tree(ctx, x.store, id)
	if len(ids) == 0 {
		return err
	}
	if err != nil {
		x.app.complain(fmt.Errorf("these may belong to the session and are left out:\n%w", err))
	}
	return archive.ExportAll(ctx, w, ids, x.open)
}

// open opens a log for reading, whatever its encoding.
func (x *exporting) open(ctx context.Context, id dsh.SessionID) (session.Log, error) {
	log, err := x.store.OpenReader(ctx, id)
	if errors.Is(err, jsonl.ErrEncoding) {
		log, err = x.other(ctx, id, err)
	}
	if err != nil {
		return nil, err
	}
	if tail := log.Tail(); tail.Bytes > 0 {
		x.app.complain(fmt.Errorf("%s: the last %s are not a whole write and are left out", id, plural(int(tail.Bytes), "byte")))
	}
	return log, nil
}

// other opens a log of the encoding that the store has not.
func (x *exporting) other(ctx context.Context, id dsh.SessionID, because error) (*jsonl.Reader, error) {
	dir, err := x.app.sessionsDirectory(x.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range []jsonl.Encoding{jsonl.Zstd, jsonl.Raw} {
		store, err := jsonl.Open(dir, jsonl.Options{Encoding: e})
		if err != nil {
			return nil, err
		}
		if log, err := store.OpenReader(ctx, id); err == nil {
			return log, nil
		} else if !errors.Is(err, jsonl.ErrEncoding) {
			because = err
		}
	}
	return nil, because
}

// writeFile makes or replaces a file that only its owner can read, as a whole or
// not at all. What is there and no file, such as a pipe, is written to as it is.
func writeFile(path string, write func(io.Writer) error) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	var nonce [6]byte
	_, _ = rand.Read(nonce[:]) // never fails
	temporary := path + "." + hex.EncodeToString(nonce[:]) + ".tmp"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if d, err := os.Open(filepath.Dir(path)); err == nil { // the name is durable where that can be had
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}
