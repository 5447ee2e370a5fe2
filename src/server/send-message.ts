/**
 * Sends a message to another process of this start. A process that is ending has closed its channel; the message is
 * then dropped.
 */
export function sendToProcess<M>(peer: { send(message: M): unknown }, message: M): void {
  try {
    peer.send(message)
  } catch {}
}
