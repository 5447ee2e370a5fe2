import type { ChatRequest, ToolChoice } from './chat.ts'

type ForcedChoice = Exclude<ToolChoice, 'auto' | 'none'>

/** Returns true if the client requires a tool call. */
export function isDemanding(choice: ToolChoice | null): choice is ForcedChoice {
  return choice !== null && choice !== 'auto' && choice !== 'none'
}

/**
 * Returns true if the tool choice accepts a call of this tool: of an offered one, never of one that the model made up. A choice that
 * names no tool of the client is for one of the provider.
 */
export function isChosenTool({ toolChoice, tools }: Pick<ChatRequest, 'toolChoice' | 'tools'>, name: string): boolean {
  if (!isDemanding(toolChoice)) return true
  const isOffered = (one: string) => tools.some(tool => tool.name === one)
  if (toolChoice === 'required') return isOffered(name)
  return toolChoice.name === name || !isOffered(toolChoice.name)
}
