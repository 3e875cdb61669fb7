package dsh

import (
	"crypto/sha256"
	"encoding/hex"
)

// A Digest is "sha256:" and the hash in hexadecimal.
type Digest string

// digestOf returns the digest that sum is.
func digestOf(sum [sha256.Size]byte) Digest { return Digest("sha256:" + hex.EncodeToString(sum[:])) }

// A RequestDigest is the digests of a request's parts, in the form in which a
// log holds them. Equal parts have equal digests, also if one was read from a
// log. What says whose the request is and where in a turn it stands is left
// out.
type RequestDigest struct {
	// Config is over the header's JSON without system prompt and tools, a
	// line break and the JSON of the parameters.
	Config Digest
	// System is over the system prompt as a JSON string.
	System Digest
	// Tools is over the JSON of each schema in order, a line each.
	Tools Digest
	// Messages is that of a [MessageChain].
	Messages Digest
}

// Digest returns the digests of r. It takes time with the length of the
// history: about as long as an adapter takes to write its body.
func (r *Request) Digest() RequestDigest {
	d := r.Header.Digest()
	var c MessageChain
	for _, m := range r.Messages {
		c.Add(m)
	}
	d.Messages = c.Digest(len(r.Messages))
	return d
}

// Digest returns the digests of h; that of the messages is empty.
func (h *Header) Digest() RequestDigest {
	bare := Header{Config: h.Config, AdapterDefaults: h.AdapterDefaults}
	buf := append(bare.appendJSON(nil), '\n')
	buf = h.Config.Parameters.appendJSON(buf)
	d := RequestDigest{Config: digestOf(sha256.Sum256(buf))}
	d.System = digestOf(sha256.Sum256(AppendString(buf[:0], h.System)))
	buf = buf[:0]
	for i := range h.Tools {
		buf = append(h.Tools[i].appendJSON(buf), '\n')
	}
	d.Tools = digestOf(sha256.Sum256(buf))
	return d
}

// A MessageChain digests a list of messages that grows: each link is the hash
// of the one before and the message's JSON. The first follows 32 zero bytes,
// which are the digest of no messages. The zero value has none.
type MessageChain struct {
	links [][sha256.Size]byte
	buf   []byte
}

// Add adds m.
func (c *MessageChain) Add(m *Message) {
	c.buf = c.buf[:0]
	if n := len(c.links); n > 0 {
		c.buf = append(c.buf, c.links[n-1][:]...)
	} else {
		c.buf = append(c.buf, make([]byte, sha256.Size)...)
	}
	c.buf = m.AppendJSON(c.buf)
	c.links = append(c.links, sha256.Sum256(c.buf))
}

// Len returns how many messages were added.
func (c *MessageChain) Len() int { return len(c.links) }

// Digest returns the digest of the first n messages.
func (c *MessageChain) Digest(n int) Digest {
	if n == 0 {
		return digestOf([sha256.Size]byte{})
	}
	return digestOf(c.links[n-1])
}

func (d *RequestSent) appendJSON(dst []byte) []byte {
	dst = appendStep(dst, '{', d.Turn, d.Step)
	dst = appendInt(dst, `,"attempt":`, d.Attempt)
	dst = appendInt(dst, `,"through":`, d.Through)
	dst = appendInt(dst, `,"messages":`, d.Messages)
	dst = appendText(dst, `,"digest":{"config":`, d.Digest.Config)
	dst = appendText(dst, `,"system":`, d.Digest.System)
	dst = appendText(dst, `,"tools":`, d.Digest.Tools)
	dst = appendText(dst, `,"messages":`, d.Digest.Messages)
	return append(dst, '}', '}')
}

func decodeRequestSent(v value) (d RequestSent, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "attempt":
			d.Attempt, err = intOf[int](v)
		case "through":
			d.Through, err = countOf[Seq](v)
		case "messages":
			d.Messages, err = countOf[int](v)
		case "digest":
			d.Digest, err = decodeRequestDigest(v)
		default:
			err = stepMember(key, v, &d.Turn, &d.Step)
		}
		return err
	}, "turn", "step", "attempt", "through", "messages", "digest")
	return d, err
}

func decodeRequestDigest(v value) (d RequestDigest, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "config":
			d.Config, err = textOf[Digest](v)
		case "system":
			d.System, err = textOf[Digest](v)
		case "tools":
			d.Tools, err = textOf[Digest](v)
		case "messages":
			d.Messages, err = textOf[Digest](v)
		}
		return err
	}, "config", "system", "tools", "messages")
	return d, err
}
