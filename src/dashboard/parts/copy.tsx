import { useEffect, useState } from 'preact/hooks'
import { Icon } from './icon.tsx'

/** Copies `text`; says so. Where the browser has no clipboard, the text can still be selected by hand. */
export function Copy({ text, what }: { readonly text: string; readonly what: string }) {
  const [state, setState] = useState<'ready' | 'copied' | 'failed'>('ready')
  useEffect(() => {
    if (state === 'ready') return
    const timer = setTimeout(() => setState('ready'), 2_500)
    return () => clearTimeout(timer)
  }, [state])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setState('copied')
    } catch {
      setState('failed')
    }
  }
  return (
    <button type="button" class="button small" onClick={() => void copy()}>
      <Icon name={state === 'copied' ? 'check' : 'copy'} size={15} />
      <span aria-live="polite">
        {state === 'copied' ? 'Copied' : state === 'failed' ? 'Select it and copy by hand' : `Copy ${what}`}
      </span>
    </button>
  )
}

/** Text to be taken elsewhere: selected as a whole by a click, wrapped rather than cut. */
export function Snippet({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <div class="snippet">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>{text}</pre>
      <Copy text={text} what={what} />
    </div>
  )
}
