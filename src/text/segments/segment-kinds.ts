/**
 * Parts of a message: what it asks, what it is about, and what a client program puts around both. In a separate file, so
 * that browsers load them without the words.
 */
export const segmentKinds = ['request', 'material', 'frame'] as const
export type SegmentKind = (typeof segmentKinds)[number]
