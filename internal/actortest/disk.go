package actortest

import (
	"context"
	"iter"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Disk is a store that takes time and may fail: a memory store that says it is
// not volatile. Fail and Delay are asked on each write; nil means never and no
// time.
type Disk struct {
	Delay func() time.Duration
	Fail  func() error

	store memory.Store
}

var _ session.Store = (*Disk)(nil)

// Volatile returns false.
func (*Disk) Volatile() bool { return false }

// Create makes an empty log.
func (d *Disk) Create(ctx context.Context, h dsh.SessionHeader) (session.Log, error) {
	log, err := d.store.Create(ctx, h)
	return diskLog{log, d}, err
}

// Open opens a log to be continued.
func (d *Disk) Open(ctx context.Context, id dsh.SessionID) (session.Log, error) {
	log, err := d.store.Open(ctx, id)
	return diskLog{log, d}, err
}

// List yields the headers of all logs.
func (d *Disk) List(ctx context.Context) iter.Seq2[dsh.SessionHeader, error] {
	return d.store.List(ctx)
}

type diskLog struct {
	session.Log
	disk *Disk
}

func (l diskLog) Append(ctx context.Context, fence session.Fence, events []dsh.Event) error {
	if l.disk.Delay != nil {
		time.Sleep(l.disk.Delay())
	}
	if l.disk.Fail != nil {
		if err := l.disk.Fail(); err != nil {
			return err
		}
	}
	return l.Log.Append(ctx, fence, events)
}

func (l diskLog) Sync(ctx context.Context) error {
	if l.disk.Delay != nil {
		time.Sleep(l.disk.Delay())
	}
	return l.Log.Sync(ctx)
}
