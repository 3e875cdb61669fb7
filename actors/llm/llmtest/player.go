package llmtest

import (
	"io"
	"net/http"
	"time"
)

// player sends one response. Whenever it waits, the client's leaving and the
// server's end free it.
type player struct {
	w    http.ResponseWriter
	r    *http.Request
	stop <-chan struct{}
}

// play sends resp with its fault. Only here a connection is broken.
func (p *player) play(resp Response) {
	if !p.sleep(resp.delay) || resp.fault == faultStall && resp.after == 0 && p.stall() {
		return
	}
	p.writeHeader(resp)
	if resp.body != nil {
		p.send(*resp.body)
		return
	}
	for range resp.keepAlive {
		p.send(": keep-alive\n\n")
	}
	for i, ev := range resp.wire() {
		if !p.sleep(resp.pace) || resp.fault != noFault && i == resp.after && p.fail(resp, ev) {
			return
		}
		p.send(ev + "\n\n")
	}
	if resp.fault != noFault && resp.after >= len(resp.wire()) {
		p.fail(resp, "")
	}
}

func (p *player) writeHeader(resp Response) {
	h := p.w.Header()
	h.Set("Content-Type", "text/event-stream")
	for name, values := range resp.header {
		h[name] = values
	}
	status := resp.status
	if status == 0 {
		status = http.StatusOK
	}
	p.w.WriteHeader(status)
	p.flush()
}

// fail commits the fault and reports that the response is over.
func (p *player) fail(resp Response, next string) bool {
	switch resp.fault {
	case faultHalf:
		p.send(next[:len(next)/2])
		panic(http.ErrAbortHandler)
	case faultCut:
		panic(http.ErrAbortHandler)
	case faultStall:
		p.stall()
	case faultError:
		p.send(`data: {"error":` + resp.extra + "}\n\n")
	case faultEnd, noFault:
	}
	return true
}

// stall waits for the client or the server to leave.
func (p *player) stall() bool {
	select {
	case <-p.r.Context().Done():
	case <-p.stop:
	}
	return true
}

// sleep waits for d and reports whether to go on.
func (p *player) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.r.Context().Done():
	case <-p.stop:
	}
	return false
}

func (p *player) send(s string) {
	_, _ = io.WriteString(p.w, s)
	p.flush()
}

func (p *player) flush() {
	if f, ok := p.w.(http.Flusher); ok {
		f.Flush()
	}
}
