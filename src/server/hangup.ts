import { isatty } from 'node:tty'

/**
 * SIGHUP means that the operator requests a reload, or that the terminal of the process was closed. Without this
 * distinction a gateway would keep running after its terminal window was closed.
 */
export function onHangup({ reload, stop }: { readonly reload: () => unknown; readonly stop: () => unknown }): void {
  const terminals = [0, 1, 2].filter(descriptor => isatty(descriptor))
  process.on('SIGHUP', () => {
    const isClosed = terminals.length > 0 && !terminals.some(descriptor => isatty(descriptor))
    if (isClosed) stop()
    else reload()
  })
}
