package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// backupSuffix ends the name of a copy that a repair keeps, behind the log's
// name and a time. No log has such a name.
const backupSuffix = ".bak"

// Repair mends a session's log as far as a machine may, or says in a [Plan] how
// it would: it cuts off what is not whole, keeps what can be read of that, closes
// a turn that was left open, moves a log to where it belongs and removes what is
// left of unfinished writes. A log that needs nothing has a plan without steps.
//
// A changed log is written whole to a file of its own, which then takes the place
// of the old one: whatever fails, the log is as it was or as the plan says. Before
// that the old file is copied, unless the options forbid it.
//
// Errors: the log is in use ([session.ErrInUse]); it would lose events that no
// crash explains the loss of ([ErrNeedsCut]); or nothing can be done, and the
// error says what else may help. The plan then holds the report.
func (s *Store) Repair(ctx context.Context, id dsh.SessionID, opts RepairOptions) (Plan, error) {
	p, err := s.repair(ctx, id, opts)
	if err != nil {
		err = fmt.Errorf("jsonl: repair %s: %w", id, err)
	}
	return p, err
}

func (s *Store) repair(ctx context.Context, id dsh.SessionID, opts RepairOptions) (Plan, error) {
	claims, err := s.claims(ctx, id)
	if err != nil {
		return Plan{}, err
	}
	f := &claims[0]
	look := func() (*inspection, Plan, []byte, error) {
		in := s.inspect(f)
		if len(claims) > 1 {
			in.duplicate(claims[1].Path)
		}
		if opts.Apply && in.Verdict == InUse {
			in.Holder = nil // the lock says it, and it is certain
			in.judge(s, nil)
		}
		p, content, err := s.plan(in, opts)
		return in, p, content, err
	}
	in, p, _, err := look()
	if err != nil || len(p.Steps) == 0 || !opts.Apply {
		if err == nil && opts.Apply {
			p.Applied = true
		}
		return p, err
	}
	if dir := f.dir(); s.own(dir) { // else nobody can have it open
		held, err := acquire(dir, in.ID, 0)
		if err != nil {
			return p, err
		}
		defer func() { _ = held.release() }()
	}
	in, p, content, err := look() // it may have changed
	if err != nil {
		return p, err
	}
	if content != nil && !opts.NoBackup {
		if p.Backup, err = s.backup(in); err != nil {
			return p, fmt.Errorf("backup: %w", err)
		}
	}
	if err := s.apply(in, &p, content); err != nil {
		return p, err
	}
	p.Applied = true
	return p, nil
}

// apply does what the plan says. The caller has the lock.
func (s *Store) apply(in *inspection, p *Plan, content []byte) error {
	if content != nil {
		if err := s.replace(in.Path, content); err != nil {
			return err
		}
	}
	for _, step := range p.Steps {
		switch step.Kind {
		case StepRemove:
			if err := s.disk.remove(step.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err := s.syncDir(filepath.Dir(step.Path)); err != nil {
				return err
			}
		case StepMove:
			if err := s.moveTo(in, p); err != nil {
				return err
			}
		case StepCut, StepRecover, StepClose: // in content
		}
	}
	return nil
}

// backup copies the file as it was, durably, and returns where to.
func (s *Store) backup(in *inspection) (string, error) {
	path := in.Path + "." + time.Now().UTC().Format("20060102T150405.000Z") + backupSuffix
	if err := s.write(path, in.data, modeOf(in.Path)); err != nil {
		return "", err
	}
	return path, s.syncDir(filepath.Dir(path))
}

// replace puts content into the place of the file at path, all of it or nothing.
func (s *Store) replace(path string, content []byte) error {
	temporary := temporaryName(path)
	if err := s.write(temporary, content, modeOf(path)); err != nil {
		return err
	}
	if err := s.disk.rename(temporary, path); err != nil {
		_ = s.disk.remove(temporary) // the next repair tries again
		return err
	}
	return s.syncDir(filepath.Dir(path))
}

func modeOf(path string) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o600
}

// write makes a file that is durable but for its name, or none.
func (s *Store) write(path string, data []byte, mode fs.FileMode) (err error) {
	f, err := s.disk.create(path)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			_ = s.disk.remove(path)
		}
	}()
	if mode != 0o600 {
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
	}
	if err := writeAt(f, data, 0); err != nil {
		return err
	}
	return f.Sync()
}

// moveTo moves a log to where it belongs, with its directory if that is its own
// and its new place is free.
func (s *Store) moveTo(in *inspection, p *Plan) error {
	from, to := filepath.Dir(in.Path), filepath.Dir(p.Path)
	_, err := os.Stat(to)
	if errors.Is(err, fs.ErrNotExist) && s.own(from) {
		if err := s.makeProject(to); err != nil {
			return err
		}
		if err := s.disk.rename(from, to); err != nil {
			return err
		}
		if p.Backup != "" { // which moved, too
			p.Backup = filepath.Join(to, filepath.Base(p.Backup))
		}
		lock := filepath.Join(to, lockName)
		writeNote(lock, note{Epoch: readNote(lock).Epoch})
		return errors.Join(s.syncDir(filepath.Dir(to)), s.syncDir(filepath.Dir(from)))
	}
	if _, _, err := s.makeDir(in.Header); err != nil {
		return err
	}
	held, err := acquire(to, in.ID, 0)
	if err != nil {
		return err
	}
	defer func() { _ = held.release() }()
	if _, err := os.Lstat(p.Path); err == nil {
		return fmt.Errorf("%s is there already", p.Path)
	}
	if err := s.disk.rename(in.Path, p.Path); err != nil {
		return err
	}
	return errors.Join(s.nameDurably(p.Path), s.syncDir(from))
}

// own reports whether a directory is that of a log and of nothing else.
func (s *Store) own(dir string) bool {
	if dir == s.root || filepath.Dir(dir) == s.root {
		return false // projects are there, and sessions
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.IsDir() {
			return false
		}
	}
	return true
}

// makeProject makes what is above the directory of a log.
func (s *Store) makeProject(dir string) error {
	if _, err := os.Stat(filepath.Dir(dir)); err == nil {
		return nil
	}
	if err := s.disk.mkdir(filepath.Dir(dir)); err != nil && !exists(err) {
		return err
	}
	return s.syncDir(s.root)
}
