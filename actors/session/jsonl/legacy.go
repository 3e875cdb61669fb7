package jsonl

import (
	"encoding/json"
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Logs of format 0 from before some of today's events are read as if they had
// been written today; the file stays as it is:
//
//   - steering/message, whose data is {turn, message} or {turn, content,
//     source}, is a user/message.
//   - The trigger of a turn/start is dropped (the codec passes over it).
//   - The reason of a turn/end was {kind: aborted} without a cause, {kind:
//     disposed}, or an error as {kind, step, failure} or {kind, step, message
//     [, code]}.
//   - Messages had no ID and no envelope of their own. They get the ID
//     legacy-message:<session>:<seq>; a result that replaces another inherits
//     the other's.
//
// What looks like neither form is refused, not guessed at.

const steeringMessage = "steering/message"

// legacyCause is the cause of a turn that was aborted when causes were not
// logged.
const legacyCause dsh.CauseKind = "legacy"

// needsUpgrade reports whether an event was read but is of an old form.
func needsUpgrade(ev *dsh.Event) bool {
	switch d := ev.Data.(type) {
	case dsh.TurnEnd:
		return d.Reason.Kind == dsh.EndAborted && d.Reason.Cause == dsh.Cause{} ||
			d.Reason.Kind == dsh.EndError && d.Reason.Failure == nil ||
			d.Reason.Kind == "disposed"
	case dsh.Opaque:
		return d.Name == steeringMessage
	default:
		return false
	}
}

// upgrade reads a line of an old form; old is false if it is of none.
func (d *decoder) upgrade(line []byte) (ev dsh.Event, old bool, err error) {
	var m, data members
	if json.Unmarshal(line, &m) != nil || json.Unmarshal(m["data"], &data) != nil || data == nil {
		return ev, false, nil
	}
	kind, err := text(m["type"])
	if err != nil {
		return ev, false, nil
	}
	seq, err := integer(m["seq"])
	if err != nil {
		return ev, false, nil
	}
	was := kind
	switch kind {
	case steeringMessage:
		old = true
		kind, data, err = d.steering(data, dsh.Seq(seq))
		if !m.has("surfaceOp") {
			m["surfaceOp"] = quote("append")
		}
	case dsh.TypeTurnEnd:
		old, err = upgradeReason(data)
	case dsh.TypeUserMessage:
		if !data.has("id") && !data.has("role") && !data.has("message") && data.has("content") && data.has("source") {
			old = true
			d.identify(data, dsh.Seq(seq))
		}
	case dsh.TypeAssistantMessage:
		if !data.has("message") && data.has("content") && data.has("provenance") {
			old, err = true, d.upgradeAnswer(data, dsh.Seq(seq))
		}
	case dsh.TypeToolFinished:
		if !data.has("message") && data.has("callId") && data.has("content") && data.has("isError") {
			old = true
			d.upgradeResult(m, data, dsh.Seq(seq))
		}
	}
	if !old {
		return ev, false, nil
	}
	if err == nil {
		m["type"], m["data"] = quote(kind), encode(data)
		err = ev.UnmarshalJSON(encode(m))
	}
	if err != nil {
		err = fmt.Errorf("old form of %s: %w", was, err)
	}
	return ev, true, err
}

func (m members) has(name string) bool { _, ok := m[name]; return ok }

// encode writes an object whose members are valid JSON.
func encode(m members) json.RawMessage {
	raw, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("jsonl: encode members: %v", err)) // they were read before
	}
	return raw
}

func quote[S ~string](s S) json.RawMessage { return dsh.AppendString(nil, s) }

// identify makes data the message that it is part of.
func (d *decoder) identify(data members, seq dsh.Seq) {
	data["id"] = quote(d.legacyID(seq))
	data["role"] = quote(dsh.RoleUser)
}

func (d *decoder) legacyID(seq dsh.Seq) dsh.MessageID {
	if id, ok := d.inherited[seq]; ok {
		return id
	}
	return dsh.MessageID(fmt.Sprintf("legacy-message:%s:%d", d.id, seq))
}

// inherit gives the message of an event the ID that another one has. The whole
// log is read before any part of it, so parts find the ID there.
func (d *decoder) inherit(seq, from dsh.Seq) {
	if _, ok := d.inherited[seq]; ok {
		return
	}
	if d.inherited == nil {
		d.inherited = map[dsh.Seq]dsh.MessageID{}
	}
	d.inherited[seq] = d.legacyID(from)
}

func (d *decoder) steering(data members, seq dsh.Seq) (string, members, error) {
	var message members
	if data.only([]string{"turn", "message"}) == nil && json.Unmarshal(data["message"], &message) == nil && message != nil {
		return dsh.TypeUserMessage, message, nil
	}
	if err := data.only([]string{"turn", "content", "source"}); err != nil {
		return steeringMessage, nil, err
	}
	delete(data, "turn")
	d.identify(data, seq)
	return dsh.TypeUserMessage, data, nil
}

// upgradeReason rewrites the reason of a turn's end if it is of an old form.
func upgradeReason(data members) (old bool, err error) {
	var reason members
	if err := json.Unmarshal(data["reason"], &reason); err != nil {
		return false, nil
	}
	kind, err := text(reason["kind"])
	if err != nil {
		return false, nil
	}
	now := dsh.Ending{Kind: dsh.EndAborted}
	switch {
	case kind == string(dsh.EndAborted) && !reason.has("reason"):
		now.Cause.Kind = legacyCause
	case kind == "disposed":
		now.Cause.Kind = dsh.CauseDisposed
	case kind == string(dsh.EndError) && !reason.has("error"):
		now.Kind, now.Failure = dsh.EndError, &dsh.Failure{Code: dsh.CodeUnknown}
		switch {
		case reason.only([]string{"kind", "step", "failure"}) == nil:
			err = json.Unmarshal(reason["failure"], now.Failure)
		default:
			if err = reason.only([]string{"kind", "step", "message"}, "code"); err != nil {
				break
			}
			now.Failure.Message, err = text(reason["message"])
			if code, ok := reason["code"]; ok && err == nil {
				var s string
				s, err = text(code)
				now.Failure.Code = dsh.Code(s)
			}
		}
	default:
		return false, nil
	}
	if err != nil {
		return true, err
	}
	data["reason"], err = now.MarshalJSON()
	return true, err
}

// upgradeAnswer wraps {content, provenance} into a message.
func (d *decoder) upgradeAnswer(data members, seq dsh.Seq) error {
	var source members
	if err := json.Unmarshal(data["provenance"], &source); err != nil || source == nil {
		return fmt.Errorf("provenance: %.40s is no object", data["provenance"])
	}
	source["kind"] = quote("model")
	data["message"] = encode(members{
		"id": quote(d.legacyID(seq)), "role": quote(dsh.RoleAssistant),
		"content": data["content"], "source": encode(source),
	})
	delete(data, "content")
	delete(data, "provenance")
	return nil
}

// upgradeResult wraps {callId, content, isError} into a message.
func (d *decoder) upgradeResult(m, data members, seq dsh.Seq) {
	var op struct{ Start *dsh.Seq }
	if json.Unmarshal(m["surfaceOp"], &op) == nil && op.Start != nil {
		d.inherit(seq, *op.Start)
	}
	data["message"] = encode(members{
		"id": quote(d.legacyID(seq)), "role": quote(dsh.RoleUser),
		"content": json.RawMessage("[" + string(encode(members{
			"type": quote("tool-result"), "toolCallId": data["callId"],
			"content": data["content"], "isError": data["isError"],
		})) + "]"),
		"source": encode(members{"kind": quote("tool"), "callId": data["callId"]}),
	})
	for _, name := range []string{"callId", "content", "isError"} {
		delete(data, name)
	}
}
