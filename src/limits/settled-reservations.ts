import { createRecentMap, type RecentMap } from '../core/text/recent-map.ts'
import type { OpenReservation } from './meter.ts'

const maximumSettled = 20_000

/**
 * Creates a map of settled requests' reservations by request ID, so that a repeated call returns the same result. The
 * oldest are evicted.
 */
export function createSettledReservations(): RecentMap<Pick<OpenReservation, 'reservation' | 'limits'>> {
  return createRecentMap(maximumSettled)
}
