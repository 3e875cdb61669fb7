package dsh

import "fmt"

// appendFact appends the data of an event.
func appendFact(dst []byte, f Fact) []byte {
	switch d := f.(type) {
	case TurnStart:
		return append(appendInt(dst, `{"turn":`, d.Turn), '}')
	case TurnEnd:
		dst = appendInt(dst, `{"turn":`, d.Turn)
		return append(d.Reason.appendJSON(append(dst, `,"reason":`...)), '}')
	case StepStart:
		return append(appendStep(dst, '{', d.Turn, d.Step), '}')
	case StepEnd:
		return append(appendStep(dst, '{', d.Turn, d.Step), '}')
	case UserMessage:
		return d.Message.AppendJSON(dst)
	case AssistantChunk:
		dst = append(appendStep(dst, '{', d.Turn, d.Step), `,"chunk":`...)
		return append(AppendChunk(dst, d.Chunk), '}')
	case AssistantMessage:
		return d.appendJSON(dst)
	case ToolStarted:
		dst = appendStep(dst, '{', d.Turn, d.Step)
		dst = appendText(dst, `,"callId":`, d.CallID)
		dst = appendText(dst, `,"name":`, d.Name)
		return append(appendText(dst, `,"arguments":`, d.Arguments), '}')
	case ToolFinished:
		return d.appendJSON(dst)
	case RequestHeader:
		dst = d.Header.appendJSON(append(dst, `{"header":`...))
		return append(appendText(dst, `,"reason":`, d.Reason), '}')
	case RequestParameters:
		return d.Parameters.appendJSON(dst)
	case RequestSent:
		return d.appendJSON(dst)
	case RequestContext:
		dst = appendText(dst, `{"provider":`, d.Provider)
		dst = appendText(dst, `,"model":`, d.Model)
		return append(optInt(dst, `,"contextWindow":`, d.ContextWindow), '}')
	case InboxSpliced:
		return d.appendJSON(dst)
	case EndSeed:
		return append(dst, "{}"...)
	case RetryScheduled:
		return d.appendJSON(dst)
	case RetryStarted:
		dst = appendText(dst, `{"retryId":`, d.RetryID)
		dst = appendStep(dst, ',', d.Turn, d.Step)
		return append(appendInt(dst, `,"retry":`, d.Retry), '}')
	case Opaque:
		if len(d.Raw) == 0 {
			return append(dst, "null"...)
		}
		return appendRaw(dst, d.Raw)
	case ChunkRun:
		panic("dsh: a ChunkRun has no JSON form; expand it first")
	}
	panic(fmt.Sprintf("dsh: no JSON form for fact %T", f))
}

func appendStep(dst []byte, open byte, turn, step int) []byte {
	dst = appendInt(append(dst, open), `"turn":`, turn)
	return appendInt(dst, `,"step":`, step)
}

func (d *AssistantMessage) appendJSON(dst []byte) []byte {
	dst = appendStep(dst, '{', d.Turn, d.Step)
	dst = d.Message.AppendJSON(append(dst, `,"message":`...))
	if d.Usage != nil {
		dst = d.Usage.appendJSON(append(dst, `,"usage":`...))
	}
	if d.Interrupted {
		dst = append(dst, `,"interrupted":true`...)
	}
	return append(dst, '}')
}

func (d *ToolFinished) appendJSON(dst []byte) []byte {
	dst = appendStep(dst, '{', d.Turn, d.Step)
	dst = d.Message.AppendJSON(append(dst, `,"message":`...))
	if d.Error != nil {
		dst = appendText(dst, `,"error":{"name":`, d.Error.Name)
		dst = append(appendText(dst, `,"code":`, d.Error.Code), '}')
	}
	return append(optRaw(dst, `,"meta":`, d.Meta), '}')
}

func (d *InboxSpliced) appendJSON(dst []byte) []byte {
	dst = appendText(dst, `{"target":`, d.Target)
	dst = appendInt(dst, `,"start":`, d.Start)
	dst = optInt(dst, `,"removedCount":`, d.Removed)
	dst = append(dst, `,"inserted":[`...)
	for i, m := range d.Inserted {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = m.AppendJSON(dst)
	}
	dst = append(dst, ']')
	return append(optText(dst, `,"outcome":`, d.Outcome), '}')
}

func (d *RetryScheduled) appendJSON(dst []byte) []byte {
	dst = appendText(dst, `{"retryId":`, d.RetryID)
	dst = appendStep(dst, ',', d.Turn, d.Step)
	dst = appendText(dst, `,"provider":`, d.Provider)
	dst = appendText(dst, `,"mode":`, d.Mode)
	dst = appendText(dst, `,"policyKey":`, d.PolicyKey)
	dst = appendInt(dst, `,"retry":`, d.Retry)
	dst = optIntPtr(dst, `,"maxRetries":`, d.MaxRetries)
	dst = appendInt(dst, `,"delayMs":`, d.DelayMs)
	if d.Failure != nil {
		dst = d.Failure.appendJSON(append(dst, `,"failure":`...))
	}
	return append(dst, '}')
}

// decodeFact reads the data of an event of this type.
func decodeFact(name string, v value) (Fact, error) {
	switch name {
	case TypeTurnStart:
		return fact(decodeTurnStart(v))
	case TypeTurnEnd:
		return fact(decodeTurnEnd(v))
	case TypeStepStart:
		turn, step, err := decodeStep(v)
		return StepStart{turn, step}, err
	case TypeStepEnd:
		turn, step, err := decodeStep(v)
		return StepEnd{turn, step}, err
	case TypeUserMessage:
		m, err := decodePtr(v, decodeMessage)
		return UserMessage{m}, err
	case TypeAssistantChunk:
		return fact(decodeAssistantChunk(v))
	case TypeAssistantMessage:
		return fact(decodeAssistantMessage(v))
	case TypeToolStarted:
		return fact(decodeToolStarted(v))
	case TypeToolFinished:
		return fact(decodeToolFinished(v))
	case TypeRequestHeader:
		return fact(decodeRequestHeader(v))
	case TypeParameters:
		p, err := decodeParameters(v)
		return RequestParameters{p}, err
	case TypeRequestSent:
		return fact(decodeRequestSent(v))
	case TypeRequestContext:
		return fact(decodeRequestContext(v))
	case TypeInboxSpliced:
		return fact(decodeInboxSpliced(v))
	case TypeEndSeed:
		return EndSeed{}, v.members(func([]byte, value) error { return nil })
	case TypeRetryScheduled:
		return fact(decodeRetryScheduled(v))
	case TypeRetryStarted:
		return fact(decodeRetryStarted(v))
	}
	return Opaque{Name: name, Raw: v.raw()}, nil
}

func fact[F Fact](f F, err error) (Fact, error) { return f, err }

func decodeTurnStart(v value) (d TurnStart, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		if string(key) == "turn" {
			d.Turn, err = intOf[int](v)
		}
		return err
	}, "turn")
	return d, err
}

func decodeTurnEnd(v value) (d TurnEnd, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "turn":
			d.Turn, err = intOf[int](v)
		case "reason":
			d.Reason, err = decodeEnding(v)
		}
		return err
	}, "turn", "reason")
	return d, err
}

func decodeStep(v value) (turn, step int, err error) {
	err = v.members(func(key []byte, v value) error { return stepMember(key, v, &turn, &step) }, "turn", "step")
	return turn, step, err
}

// stepMember reads the two members that say where in a turn an event belongs,
// and passes over all others.
func stepMember(key []byte, v value, turn, step *int) (err error) {
	switch string(key) {
	case "turn":
		*turn, err = intOf[int](v)
	case "step":
		*step, err = intOf[int](v)
	}
	return err
}

func decodeAssistantChunk(v value) (d AssistantChunk, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		if string(key) == "chunk" {
			d.Chunk, err = decodeChunk(v)
			return err
		}
		return stepMember(key, v, &d.Turn, &d.Step)
	}, "turn", "step", "chunk")
	return d, err
}

func decodeAssistantMessage(v value) (d AssistantMessage, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "message":
			d.Message, err = decodePtr(v, decodeMessage)
		case "usage":
			d.Usage, err = decodePtr(v, decodeUsage)
		case "interrupted":
			d.Interrupted, err = v.boolean()
		default:
			err = stepMember(key, v, &d.Turn, &d.Step)
		}
		return err
	}, "turn", "step", "message")
	return d, err
}

func decodeToolStarted(v value) (d ToolStarted, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "callId":
			d.CallID, err = textOf[CallID](v)
		case "name":
			d.Name, err = v.text()
		case "arguments":
			d.Arguments, err = v.text()
		default:
			err = stepMember(key, v, &d.Turn, &d.Step)
		}
		return err
	}, "turn", "step", "callId", "name", "arguments")
	return d, err
}

func decodeToolFinished(v value) (d ToolFinished, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "message":
			d.Message, err = decodePtr(v, decodeMessage)
		case "error":
			d.Error, err = decodePtr(v, decodeToolFailure)
		case "meta":
			d.Meta = v.raw()
		default:
			err = stepMember(key, v, &d.Turn, &d.Step)
		}
		return err
	}, "turn", "step", "message")
	return d, err
}

func decodeToolFailure(v value) (f ToolFailure, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "name":
			f.Name, err = v.text()
		case "code":
			f.Code, err = v.text()
		}
		return err
	}, "name", "code")
	return f, err
}

func decodeRequestHeader(v value) (d RequestHeader, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "header":
			d.Header, err = decodePtr(v, decodeHeader)
		case "reason":
			d.Reason, err = textOf[HeaderReason](v)
		}
		return err
	}, "header", "reason")
	return d, err
}

func decodeRequestContext(v value) (d RequestContext, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "provider":
			d.Provider, err = v.text()
		case "model":
			d.Model, err = v.text()
		case "contextWindow":
			d.ContextWindow, err = intOf[int](v)
		}
		return err
	}, "provider", "model")
	return d, err
}

func decodeInboxSpliced(v value) (d InboxSpliced, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "target":
			d.Target, err = textOf[Target](v)
		case "start":
			d.Start, err = countOf[int](v)
		case "removedCount":
			d.Removed, err = countOf[int](v)
		case "inserted":
			d.Inserted, err = elements(v, func(v value) (*Message, error) { return decodePtr(v, decodeMessage) })
		case "outcome":
			d.Outcome, err = v.text()
		}
		return err
	}, "target", "start", "inserted")
	return d, err
}

func decodeRetryScheduled(v value) (d RetryScheduled, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "retryId":
			d.RetryID, err = v.text()
		case "provider":
			d.Provider, err = v.text()
		case "mode":
			d.Mode, err = v.text()
		case "policyKey":
			d.PolicyKey, err = v.text()
		case "retry":
			d.Retry, err = intOf[int](v)
		case "maxRetries":
			d.MaxRetries, err = decodePtr(v, intOf[int])
		case "delayMs":
			d.DelayMs, err = v.millis()
		case "failure":
			d.Failure, err = decodePtr(v, decodeFailure)
		default:
			err = stepMember(key, v, &d.Turn, &d.Step)
		}
		return err
	}, "retryId", "turn", "step", "provider", "mode", "policyKey", "retry", "delayMs")
	return d, err
}

func decodeRetryStarted(v value) (d RetryStarted, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "retryId":
			d.RetryID, err = v.text()
		case "retry":
			d.Retry, err = intOf[int](v)
		default:
			err = stepMember(key, v, &d.Turn, &d.Step)
		}
		return err
	}, "retryId", "turn", "step", "retry")
	return d, err
}
