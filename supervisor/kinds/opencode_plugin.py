"""What runs inside opencode for the fleet: it prints what `opencode run` keeps to itself, such as what subagents use
and that a provider is asked again, and refuses tools that are not in the agent's grant. It changes nothing else."""

from __future__ import annotations

import json

_LISTEN = """\
// Written by fleet-supervisor at each start. It tells the fleet what a task uses, and holds it to its grant of tools.
const GRANT = %s
const OWN = %s
for (const name of %s) delete process.env[name]
const granted = (tool) =>
  GRANT === null || GRANT.some((name) => (name.endsWith("*") ? tool.startsWith(name.slice(0, -1)) : tool === name))
const told = (type, said) => {
  if (type === "session.created" || type === "session.idle" || type === "session.error") return true
  if (type === "session.status") return said.status?.type === "retry"
  if (type === "message.updated") return true
  return type === "message.part.updated" && ["step-start", "step-finish"].includes(said.part?.type)
}
const denied = (config) => {
  const tools = (name) => name.replace(/[^a-zA-Z0-9_-]/g, "_") + "_"
  const servers = Object.keys(config.mcp ?? {}).filter((name) => !GRANT?.some((tool) => tool.startsWith(tools(name))))
  for (const name of servers) config.mcp[name] = { ...config.mcp[name], enabled: false }
  return GRANT === null ? [] : OWN.filter((tool) => !granted(tool))
}
const hide = (holder, tools) => {
  const rules = typeof holder.permission === "string" ? { "*": holder.permission } : { ...holder.permission }
  // The last rule that matches holds.
  for (const tool of tools) delete rules[tool]
  for (const tool of tools) rules[tool] = "deny"
  holder.permission = rules
}
export const Fleet = async () => ({
  config: async (config) => {
    const tools = denied(config)
    if (GRANT === null) return
    hide(config, tools)
    for (const agent of Object.values(config.agent ?? {})) if (agent?.permission) hide(agent, tools)
  },
  "tool.execute.before": async ({ tool }) => {
    if (!granted(tool)) throw new Error(`The tool ${tool} is not in this agent's grant.`)
  },
  "chat.params": async ({ sessionID, model }) => {
    const window = model?.limit?.context
    if (!Number.isSafeInteger(window) || window <= 0) return
    const properties = { sessionID, providerID: String(model.providerID), modelID: String(model.id), window }
    process.stdout.write(JSON.stringify({ type: "fleet", event: { type: "fleet.model", properties } }) + "\\n")
  },
  event: async ({ event }) => {
    const said = event.properties ?? {}
    if (told(event.type, said))
      process.stdout.write(JSON.stringify({ type: "fleet", event: { type: event.type, properties: said } }) + "\\n")
  },
})
"""


def text(granted: tuple[str, ...] | None, hidden: tuple[str, ...], ours: tuple[str, ...]) -> str:
    """The plugin, for a grant of these tools (None: whatever opencode has); `hidden` are the permissions of opencode's
    own that a model need not see when they are not granted, `ours` variables that are for opencode's start alone."""
    return _LISTEN % (json.dumps(granted), json.dumps(hidden), json.dumps(ours))
