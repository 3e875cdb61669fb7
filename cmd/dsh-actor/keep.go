package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/cmd/dsh-actor/config"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// keeping is what becomes of a run's session, and which one it goes on with.
type keeping struct {
	store    string // one of config.Stores
	sessions session.Store
	dir      string // as it was given, for whoever goes on
	place    string // where the sessions are
	past     *past  // nil for a new session
	mended   *mended
}

// mended is what the store had to repair.
type mended struct {
	mu      sync.Mutex
	repairs []jsonl.Repair
}

func (m *mended) add(r jsonl.Repair) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.repairs = append(m.repairs, r)
}

// take returns the repairs and forgets them.
func (m *mended) take() []jsonl.Repair {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.repairs
	m.repairs = nil
	return all
}

// keep chooses the store, makes sure that it can be used, and looks at the
// session that the run goes on with. A store gets its case here.
func (a *app) keep(ctx context.Context, f *runFlags, changed func(flag string) bool) (keeping, error) {
	k := keeping{dir: f.sessionsDir, mended: &mended{}}
	flag, err := f.pastFlag(changed)
	if err != nil {
		return k, err
	}
	if k.store, err = a.chooseStore(f.store, changed("store"), flag); err != nil {
		return k, err
	}
	switch k.store {
	case config.StoreMemory:
		if changed("sessions-dir") {
			err = usagef("--sessions-dir does not go with --store %s, which keeps nothing", k.store)
		}
		return k, err
	default:
		err = a.keepFiles(ctx, &k, flag, f)
		return k, err
	}
}

// chooseStore returns the store that is named. A session that was kept is looked
// for where sessions are kept, whatever is the default.
func (a *app) chooseStore(given string, isGiven bool, pastFlag string) (string, error) {
	named, by := given, "--store"
	if !isGiven {
		own, err := config.Load(config.Sources{Env: a.env})
		if err != nil {
			return "", err
		}
		named, by = first(own.Store, config.Stores[0]), "DSH_ACTOR_STORE"
	}
	if err := oneOf(by, named, config.Stores); err != nil {
		return "", err
	}
	if pastFlag == "" || named != config.StoreMemory {
		return named, nil
	}
	if isGiven {
		return "", usagef("--store %s keeps nothing that %s could find", named, pastFlag)
	}
	return config.StoreJSONL, nil
}

// keepFiles opens the store of files.
func (a *app) keepFiles(ctx context.Context, k *keeping, pastFlag string, f *runFlags) error {
	dir, err := a.sessionsDirectory(f.sessionsDir)
	switch {
	case errors.Is(err, errNoHome):
		return fmt.Errorf("%w, or keep nothing with --store %s", err, config.StoreMemory)
	case err != nil:
		return err
	}
	store, err := a.openStore(dir, jsonl.Options{Repaired: k.mended.add})
	if err != nil {
		return unusable(dir, err)
	}
	k.sessions, k.place = store, dir
	if pastFlag != "" {
		if k.past, err = a.findPast(ctx, store, pastFlag, f); err != nil {
			return err
		}
	}
	if err := checkWritable(dir); err != nil {
		return unusable(dir, err)
	}
	return nil
}

var errUnusable = errors.New("sessions cannot be kept")

// unusable says what to do about a store that does not work.
func unusable(dir string, err error) error {
	return failed(fmt.Errorf("%w in %s: %w; name another directory with --sessions-dir, or keep nothing with --store %s",
		errUnusable, dir, err, config.StoreMemory))
}

// goOn returns the command that goes on with a session, or "" if it is not kept.
func (k *keeping) goOn(id dsh.SessionID) string {
	switch {
	case k.store == config.StoreMemory:
		return ""
	case k.dir == "":
		return fmt.Sprintf("dsh-actor run --resume %s", id)
	}
	return fmt.Sprintf("dsh-actor run --sessions-dir %q --resume %s", k.dir, id)
}

// origin says so to programs.
func (k *keeping) origin() origin {
	o := origin{Store: k.store, Resumed: k.past != nil && !k.past.fork}
	if k.past != nil && k.past.fork {
		o.ForkedFrom, o.ForkedAt = k.past.id, &k.past.boundary
	}
	return o
}
