package protocol

// Action is what became of an action, or nil: the report, if there is one, does not say.
func (rep *Report) Action(id string) *ActionRecord {
	if rep == nil {
		return nil
	}
	for i := range rep.Actions {
		if rep.Actions[i].ID == id {
			return &rep.Actions[i]
		}
	}
	return nil
}

// LostContainer is the first container that was restarted and has lost its process, or nothing.
func (rep *Report) LostContainer() string {
	if rep != nil {
		for i := range rep.Containers {
			if rep.Containers[i].State == StateLost {
				return rep.Containers[i].Name
			}
		}
	}
	return ""
}

// Command is what became of a command, or nil: the report, if there is one, does not say.
func (rep *Report) Command(id string) *CommandResult {
	if rep == nil {
		return nil
	}
	for i := range rep.Commands {
		if rep.Commands[i].ID == id {
			return &rep.Commands[i]
		}
	}
	return nil
}
