import type { ButtonHTMLAttributes } from 'preact'

type ButtonProps = Omit<ButtonHTMLAttributes, 'class' | 'type'> & {
  readonly text?: string
  /** Further classes: `primary`, `small`, `danger-text`, … */
  readonly look?: string
  readonly type?: 'button' | 'submit'
}

/** A button with a text, or with other content. It submits its form only as `submit`. */
export function Button({ text, look = '', type = 'button', children = text, ...others }: ButtonProps) {
  return (
    <button type={type} class={look === 'link' ? look : `button ${look}`} {...others}>
      {children}
    </button>
  )
}
