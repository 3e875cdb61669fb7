package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/cmd/dsh-actor/config"
)

// sessionsName is the directory of sessions in the home directory.
const sessionsName = "sessions"

// openStore opens the store of sessions in dir or, if that is empty, where the
// user's configuration and the environment say. Nothing is made before the first
// session.
func (a *app) openStore(dir string, opts jsonl.Options) (*jsonl.Store, error) {
	dir, err := a.sessionsDirectory(dir)
	if err != nil {
		return nil, err
	}
	opts.Encoding = jsonl.Detect(dir)
	return jsonl.Open(dir, opts)
}

var errNoHome = errors.New("there is no home directory to keep sessions in; set DSH_ACTOR_SESSIONS_DIR or DSH_ACTOR_HOME")

// sessionsDirectory returns where the sessions are.
func (a *app) sessionsDirectory(dir string) (string, error) {
	if dir == "" {
		own, err := config.Load(config.Sources{Env: a.env})
		if err != nil {
			return "", err
		}
		dir = own.SessionsDir()
	}
	if dir == "" {
		home := a.homeDirectory()
		if home == "" {
			return "", errNoHome
		}
		dir = filepath.Join(home, sessionsName)
	}
	return filepath.Abs(dir)
}

// checkWritable returns why no session can be made in the directory of a store,
// which is made if it is not there.
func checkWritable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, ".writable"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_ = os.Remove(f.Name()) // another run may have; what a crash leaves is used again
	return f.Close()
}
