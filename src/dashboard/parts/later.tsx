import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Button } from './button.tsx'
import { Loading, Notice } from './notice.tsx'

type LaterProps = { readonly load: () => Promise<ComponentType>; readonly what: string }

/** A part whose code is loaded when it is first shown, so that the first load stays small. */
export function Later({ load, what }: LaterProps) {
  const [state, setState] = useState<{ readonly Found: ComponentType } | 'loading' | 'failed'>('loading')
  useEffect(() => {
    load().then(
      Found => setState({ Found }),
      () => setState('failed'),
    )
  }, [])
  if (state === 'loading') return <Loading what={what} />
  if (state !== 'failed') return <state.Found />
  return (
    <Notice
      tone="bad"
      isUrgent
      title={`Could not load ${what}`}
      actions={
        // Browsers remember a failed import until the page is loaded again.
        <Button text="Reload" look="small" onClick={() => location.reload()} />
      }
    >
      The gateway is unreachable, or it was upgraded since this page was loaded.
    </Notice>
  )
}
