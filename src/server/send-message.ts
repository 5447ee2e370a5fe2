/** A message to another process of this start. One that is just ending has closed its end, and hears nothing more. */
export function sendToProcess<M>(peer: { send(message: M): unknown }, message: M): void {
  try {
    peer.send(message)
  } catch {}
}
