import { roles } from '../../core/accounts/roles.ts'
import { Notice } from '../parts/notice.tsx'
import { hashRoute } from '../state/hash-route.ts'
import { failureText } from '../state/single-sign-on-text.ts'

/** Outcome of a test sign-in, from which the browser returns to the settings. */
export function TestResult() {
  const { sso_test: outcome, role: given } = hashRoute.value.query
  // Anyone can write a link: only known words are shown.
  const role = roles.find(one => one === given)
  if (outcome === undefined) return null
  if (outcome === 'passed')
    return (
      <Notice tone="good" title="Test sign-in passed" isUrgent>
        {role === undefined ? 'This user can sign in.' : `This user signs in as ${role}.`} The test changed nothing.
      </Notice>
    )
  return (
    <Notice tone="bad" title="Test sign-in failed" isUrgent>
      {failureText(outcome)}
    </Notice>
  )
}
