import { describe, expect, test } from 'bun:test'
import type { Message } from '../../../src/core/chat/chat.ts'
import { defaultLevelShares, getLevel } from '../../../src/models/capability-levels.ts'
import { openPromptAnalyzer } from '../../../src/text/readers.ts'
import { user } from '../../harness/ask.ts'

const { read } = openPromptAnalyzer()
const getPromptLevel = (messages: readonly Message[]) => getLevel(read(messages).strongGain, defaultLevelShares)
const output = (text: string): Message => ({ role: 'assistant', text, reasoning: null, toolCalls: [], name: null })
const system = (text: string): Message => ({ role: 'system', text })
const hard =
  'Design a protocol by which eight ferries agree on one timetable although two may lie, and prove that it ends.'
const after = (opening: string, turn: string, said = 'Here it is.') => [user(opening), output(said), user(turn)]

describe('level of a turn', () => {
  test.each([
    'go on',
    'continue',
    'yes, do it',
    'fix it',
    'try again',
    'why?',
    'now with tests',
    'weiter',
    'sigue',
    'продолжай',
    '继续',
    '続けて',
    'oui, continue',
  ])('inherits the work before it when it continues: %j', turn =>
    expect(getPromptLevel(after(hard, turn))).toBe('strong'),
  )

  test.each(['B', '2', 'ok', 'the second one'])('inherits the work when it answers a question of the model: %j', turn =>
    expect(getPromptLevel(after(hard, turn, 'Two ways are open. Which one?'))).toBe('strong'),
  )

  test.each(['thanks!', 'ok', 'danke', '谢谢', 'What is the capital of Peru?'])(
    'stays light after hard work when it needs none of it: %j',
    turn => expect(getPromptLevel(after(hard, turn))).toBe('light'),
  )

  test.each(['another one', 'continue'])('stays light when the work before it is: %j', turn =>
    expect(getPromptLevel(after('Tell me a joke about cats.', turn))).toBe('light'),
  )

  test('fades when easy work follows hard work', () => {
    const easy = [...after(hard, 'What is the capital of Peru?'), output('Lima.')]
    const gain = (turn: string) => read([...easy, user(turn)]).strongGain
    expect(gain('again')).toBeLessThan(read(after(hard, 'again')).strongGain)
  })

  test('counts the task of the system text, and not who the model is', () => {
    expect(
      getPromptLevel([system('Prove each statement of the user formally in Lean.'), user('addition commutes')]),
    ).toBe('strong')
    expect(getPromptLevel([system('You are a principal engineer who proves protocols.'), user('what is 3 + 4?')])).toBe(
      'light',
    )
  })

  test.each([
    'Write a short title for the conversation.',
    'Classify the message. Answer with exactly one of: BUG, QUESTION, PRAISE.',
    'Gib der Unterhaltung einen Titel.',
  ])('stays light when a client wants a label: %j', task =>
    expect(getPromptLevel([system(task), user(hard)])).toBe('light'),
  )
})

describe('needsCurrent', () => {
  const tale = [user('Write a tale about a ferry.'), output('The ferry left at dawn.')]

  test.each(['next', "what's next?", 'any news?', 'is it still failing?', 'how much is it?', 'was nun?', '下一个'])(
    'reports none when a turn depends on others: %j',
    turn => expect(read([...tale, user(turn)]).needsCurrent).toBe(false),
  )

  test('reports none when the words about today belong to material', () => {
    expect(read([user('Rewrite: "The latest price of the ferry is out as of today."')]).needsCurrent).toBe(false)
    const notes = 'The latest news: the price of the ferry rises today. '.repeat(20)
    expect(read([user(`${notes}\n\nWhat is the price?`)]).needsCurrent).toBe(false)
  })
})
