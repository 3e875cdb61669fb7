package dsh

func (e Ending) appendJSON(dst []byte) []byte {
	dst = appendText(dst, `{"kind":`, e.Kind)
	if e.Cause != (Cause{}) {
		dst = e.Cause.appendJSON(append(dst, `,"reason":`...))
	}
	if e.Failure != nil {
		dst = e.Failure.appendJSON(append(dst, `,"error":`...))
	}
	return append(dst, '}')
}

// MarshalJSON returns the reason of a turn's end as the log holds it.
func (e Ending) MarshalJSON() ([]byte, error) { return e.appendJSON(nil), nil }

// UnmarshalJSON reads the reason of a turn's end.
func (e *Ending) UnmarshalJSON(data []byte) error {
	return unmarshal(data, "ending", decodeEnding, e)
}

func decodeEnding(v value) (e Ending, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "kind":
			e.Kind, err = textOf[EndKind](v)
		case "reason":
			e.Cause, err = decodeCause(v)
		case "error":
			e.Failure, err = decodePtr(v, decodeFailure)
		}
		return err
	}, "kind")
	return e, err
}

func (c Cause) appendJSON(dst []byte) []byte {
	dst = appendText(dst, `{"kind":`, c.Kind)
	if c.Kind == CauseHook {
		return append(appendText(dst, `,"reason":`, c.Reason), '}')
	}
	return append(optText(dst, `,"reason":`, c.Reason), '}')
}

// MarshalJSON returns the cause as the log holds it.
func (c Cause) MarshalJSON() ([]byte, error) { return c.appendJSON(nil), nil }

// UnmarshalJSON reads a cause. Kinds that only older logs have are kept.
func (c *Cause) UnmarshalJSON(data []byte) error {
	return unmarshal(data, "cause", decodeCause, c)
}

func decodeCause(v value) (c Cause, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "kind":
			c.Kind, err = textOf[CauseKind](v)
		case "reason":
			c.Reason, err = v.text()
		}
		return err
	}, "kind")
	return c, err
}
