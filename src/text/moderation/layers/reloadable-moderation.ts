import type { Moderation } from './moderation.ts'

/** Moderation whose layers can be replaced while requests run. A request in progress keeps the layers it began with. */
type ReloadableModeration = Moderation & {
  /** Uses `next` as soon as its blocklists are read, and then closes the layers before it. */
  replace(next: Moderation): void
}

export function createReloadableModeration(first: Moderation): ReloadableModeration {
  let current = first
  let newest = first
  return {
    embeddedSteps: text => current.embeddedSteps(text),
    screenSteps: part => current.screenSteps(part),
    screenMessages: messages => current.screenMessages(messages),
    isListed: address => current.isListed(address),
    get moderation() {
      return current.moderation
    },
    get secrets() {
      return current.secrets
    },
    leaksIn: text => current.leaksIn(text),
    secretsIn: message => current.secretsIn(message),
    screenAnswer: mode => current.screenAnswer(mode),
    get ready() {
      return current.ready
    },
    figures: () => current.figures(),
    close() {
      current.close()
      if (newest !== current) newest.close()
    },
    replace(next) {
      newest = next
      void next.ready.then(() => {
        // A later reload may have been faster.
        if (newest !== next) return next.close()
        current.close()
        current = next
      })
    },
  }
}
