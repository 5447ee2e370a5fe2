import { useEffect, useState } from 'preact/hooks'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'
import { Button } from './button.tsx'
import { Snippet } from './copy.tsx'
import { Icon } from './icon.tsx'
import { FailureNotice } from './notice.tsx'

const askEveryMs = 2_000

/** First-request card: creates a key, shows a working command, and confirms success. */
export function FirstRun({ onFirstCall }: { readonly onFirstCall: () => void }) {
  const [key, setKey] = useState<string | null>(null)
  const log = useResource('GET /api/v1/requests', { query: { limit: '1' }, everyMs: askEveryMs })
  const making = useAction(async () => {
    setKey((await callApi('POST /api/v1/keys', { body: { name: 'first steps' } })).key)
  })
  const first = log.data?.data[0]
  const isDone = first !== undefined
  useEffect(() => {
    if (isDone) onFirstCall()
  }, [isDone])
  return (
    <section class={`card first-run ${isDone ? 'done' : ''}`} aria-labelledby="first-run">
      <header class="card-head">
        <div>
          <h2 id="first-run">{isDone ? 'First request succeeded' : 'Make your first request'}</h2>
          <p class="about" role="status">
            {isDone
              ? `${first.model ?? 'The gateway'} answered. This card disappears on your next visit.`
              : 'Run one command with an API key. Use a key you have, or create one here: it is shown only once.'}
          </p>
        </div>
        <span class="lamp" aria-hidden="true">
          <Icon name={isDone ? 'check' : 'chevron'} />
        </span>
      </header>
      {!isDone && (
        <>
          {making.failure !== null && <FailureNotice failure={making.failure} />}
          {key === null ? (
            <div class="actions">
              <Button look="primary" disabled={making.isBusy} onClick={() => void making.run()}>
                <Icon name="keys" size={16} /> {making.isBusy ? 'Creating key…' : 'Create API key and show command'}
              </Button>
              <a class="button" href={hrefTo('playground')}>
                Open the playground
              </a>
            </div>
          ) : (
            <>
              <Snippet text={command(location.origin, key)} what="command" />
              <p class="hint">Run the command in a terminal. This card updates when the request succeeds.</p>
            </>
          )}
        </>
      )}
    </section>
  )
}

function command(origin: string, key: string): string {
  const body = JSON.stringify({
    model: 'gateway-ai',
    messages: [{ role: 'user', content: 'Say hello in one sentence.' }],
  })
  return [
    `curl ${origin}/v1/chat/completions \\`,
    `  -H 'authorization: Bearer ${key}' \\`,
    `  -H 'content-type: application/json' \\`,
    `  -d '${body}'`,
  ].join('\n')
}
