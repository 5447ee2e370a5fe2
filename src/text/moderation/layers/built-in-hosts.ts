/**
 * Built-in lists. Blocked: test hosts that vendors publish (Google Safe Browsing, Microsoft SmartScreen, Cisco
 * Umbrella, WICAR); operators configure real lists. Allowed: services so widely used that a list entry for all of one
 * is a mistake; entries for hosts below them still count.
 */

export const blockedHosts = `
testsafebrowsing.appspot.com malware.testing.google.test phishing.testing.google.test
demo.smartscreen.msft.net smartscreentestratings2.net
internetbadguys.com examplemalwaredomain.com examplebotnetdomain.com
wicar.org malware.wicar.org ianfette.org
`

export const neverBlockedHosts = `
google.com youtube.com gmail.com blogspot.com blogger.com appspot.com googleusercontent.com goo.gl firebaseapp.com web.app
facebook.com instagram.com whatsapp.com threads.net twitter.com x.com t.co linkedin.com reddit.com pinterest.com tiktok.com
snapchat.com discord.com discord.gg discordapp.com telegram.org t.me twitch.tv vk.com weibo.com quora.com medium.com
microsoft.com live.com office.com outlook.com bing.com msn.com azure.com windows.net sharepoint.com skype.com github.com
github.io githubusercontent.com gitlab.com bitbucket.org npmjs.com pypi.org stackoverflow.com stackexchange.com
apple.com icloud.com amazon.com amazonaws.com cloudfront.net cloudflare.com workers.dev pages.dev fastly.net akamaihd.net
wikipedia.org wikimedia.org archive.org mozilla.org w3.org ietf.org creativecommons.org gnu.org apache.org python.org
wordpress.com wordpress.org wix.com wixsite.com weebly.com squarespace.com tumblr.com typepad.com livejournal.com
shopify.com myshopify.com etsy.com ebay.com paypal.com stripe.com walmart.com aliexpress.com alibaba.com booking.com
dropbox.com box.com mediafire.com mega.nz wetransfer.com slideshare.net scribd.com issuu.com imgur.com flickr.com
vimeo.com dailymotion.com soundcloud.com spotify.com netflix.com imdb.com goodreads.com
bit.ly cutt.ly tinyurl.com ow.ly is.gd buff.ly rebrand.ly tiny.cc shorturl.at linktr.ee lnkd.in
netlify.app vercel.app herokuapp.com glitch.me replit.com surge.sh 000webhostapp.com godaddy.com namecheap.com
nytimes.com washingtonpost.com theguardian.com bbc.com bbc.co.uk cnn.com reuters.com bloomberg.com forbes.com wsj.com
yahoo.com aol.com duckduckgo.com baidu.com qq.com taobao.com yandex.ru mail.ru naver.com rakuten.co.jp
openai.com chatgpt.com anthropic.com claude.ai huggingface.co zoom.us slack.com notion.so trello.com atlassian.net
nih.gov nasa.gov cdc.gov who.int un.org europa.eu gov.uk harvard.edu mit.edu stanford.edu nature.com sciencedirect.com
example.com example.org example.net
`
