import type { ChatRequest, ToolChoice } from './chat.ts'

type ForcedChoice = Exclude<ToolChoice, 'auto' | 'none'>

/** Returns true if the client requires a tool call. */
export function isDemanding(choice: ToolChoice | null): choice is ForcedChoice {
  return choice !== null && choice !== 'auto' && choice !== 'none'
}

/** Returns true if the tool choice accepts a call of this tool. A choice that names no tool of the client is for one of the provider. */
export function isChosenTool({ toolChoice, tools }: Pick<ChatRequest, 'toolChoice' | 'tools'>, name: string): boolean {
  if (!isDemanding(toolChoice) || toolChoice === 'required' || toolChoice.name === name) return true
  return !tools.some(tool => tool.name === toolChoice.name)
}
