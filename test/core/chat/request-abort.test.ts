import { expect, test } from 'bun:test'
import { createRequestAbort } from '../../../src/core/chat/request-abort.ts'

test('createRequestAbort: calls every listener once with the first reason', () => {
  const ending = createRequestAbort()
  const { signal } = ending
  const heard: string[] = []
  const gone = () => heard.push('gone')
  signal.addEventListener('abort', () => heard.push('first'))
  signal.addEventListener('abort', gone)
  signal.addEventListener('abort', () => heard.push('second'))
  signal.removeEventListener('abort', gone)
  expect([signal.aborted, signal.reason]).toEqual([false, undefined])
  ending.abort('because')
  ending.abort('again')
  expect([signal.aborted, signal.reason, ...heard]).toEqual([true, 'because', 'first', 'second'])
})

test('createRequestAbort: calls listeners after `aborted` is set, and lets them remove themselves', () => {
  const ending = createRequestAbort()
  const { signal } = ending
  const heard: boolean[] = []
  const listen = () => {
    heard.push(signal.aborted)
    signal.removeEventListener('abort', listen)
  }
  signal.addEventListener('abort', listen)
  ending.abort()
  expect(heard).toEqual([true])
})
