/**
 * What the classifier knows of the world beyond its labelled examples: which words speak of the same thing. A word it never
 * saw in training counts like its kin. Written by hand; offensive words stand here because they are what is looked for.
 *
 * `kill+` stands for its regular inflections too (kills, killed, killing, killer, killers).
 */
const harmWords = {
  person:
    'someone somebody anyone people person persons wife husband spouse girlfriend boyfriend partner ex child children kid kids neighbor neighbors neighbour neighbours boss coworker coworkers colleague colleagues teacher student students woman women man men girl girls boy boys family friend friends parents mother father mom dad sister brother daughter son baby politician president victim victims humanity human humans crowd stranger strangers customer customers user users individual individuals celebrity candidate employee employees patient patients roommate grandmother grandma officer cop cops civilians everyone them him her',
  violence:
    'kill+ murder+ stab+ stabbing stabbed shoot+ strangle+ strangling poison+ attack+ bomb+ assault+ hurt+ harm+ injur+ injure torture+ torturing kidnap+ kidnapping kidnapped abduct+ assassinate+ assassinating assassination behead+ choke+ choking beat+ punch+ smash+ rape+ raping rapist molest+ hang+ hanging execute+ executing slaughter+ massacre+ eliminate+ eliminating exterminate+ exterminating annihilate+ decapitate+ dismember+ maim+ mutilate+ mutilating suffocate+ drown+ lynch+ butcher+ throttle+ bludgeon+ cripple+ crippling ambush+ violence violent violently genocide homicide bloodshed wound+ slit+ gut+ obliterate+ obliterating sever+ dispose+',
  weapon:
    'bomb bombs bombing explosive explosives explosion grenade grenades gun guns firearm firearms rifle rifles pistol pistols handgun handguns shotgun ammo ammunition silencer silencers suppressor knife knives axe machete weapon weapons weaponize missile missiles nuclear molotov napalm dynamite detonator detonate detonating tnt c4 thermite semtex landmine ied ghost machinegun bullet bullets sword flamethrower warhead dirty pipe',
  poison:
    'sarin ricin anthrax vx novichok tabun toxin toxins pathogen pathogens mustard chlorine cyanide arsenic botulinum smallpox ebola plague biological bioweapon bioweapons radioactive radiological uranium plutonium nerve agent agents precursor precursors phosgene aflatoxin thallium polonium epidemic pandemic virulent transmissible lethal deadly toxic chemical chemicals gas bacteria strychnine hemlock',
  drug: 'meth methamphetamine cocaine coke heroin fentanyl lsd mdma ecstasy opioid opioids oxycontin oxycodone vicodin xanax adderall steroid steroids ghb crack weed marijuana cannabis ketamine dmt pcp psilocybin mushrooms amphetamine amphetamines ephedrine pseudoephedrine safrole drug drugs narcotics narcotic dealer dealers prescription prescriptions painkillers cartel cutting addict addicted high stoned rohypnol roofies',
  cyber:
    'hack+ hacking malware ransomware keylogger keyloggers ddos phishing phish spearphishing exploit+ exploiting exploits botnet trojan rootkit spyware backdoor backdoors breach breaching password passwords firewall firewalls credential credentials unauthorized bypass bypassing bypasses inject+ vulnerability vulnerabilities zero-day worm payload intrusion infiltrate infiltrating network networks database databases antivirus deepfake deepfakes malicious cyberattack cyberattacks crack cracking encrypt spoof spoofing sniff wifi webcam scrape intercept intercepting disable disabling sabotage+ sabotaging virus viruses brute-force',
  fraud:
    'fraud fraudulent fraudulently scam scams scamming scammer launder laundering laundered counterfeit counterfeiting forge forging forged fake fakes faking embezzle embezzling embezzlement evade evading evasion tax taxes bribe bribery bribing blackmail blackmailing extort extortion ponzi pyramid identity theft stolen insider credit card cards ssn deceive deceiving deceptive trick tricking tricks con swindle manipulate manipulating manipulation impersonate impersonating pretending charity donations nigerian bank money atm passport passports visa money-laundering payday cheat cheating plagiarism plagiarize rig rigging exploit exploiting',
  hate: 'racist racism racial xenophobic xenophobia supremacist supremacy supremacists nazi nazis neo-nazi antisemitic anti-semitic slur slurs inferior superior hate hateful hatred bigot bigotry discriminate discriminating discrimination sexist sexism homophobic misogynistic misogyny transphobic ethnic cleansing kkk segregation intolerance stereotypes stereotype subhuman vermin infest inbred savages savage animals apes ape breed breeding invaders infidels infidel deport race races whites iq degenerate degenerates purity impure',
  group:
    'black blacks jew jews jewish muslim muslims islam islamic christian christians catholics women gay gays lesbian lesbians homosexual homosexuals homosexuality trans transgender immigrant immigrants migrants refugees mexican mexicans asian asians african africans hindu hindus sikh sikhs arab arabs latino latinos latinas hispanic disabled elderly white indian indians chinese gypsy gypsies roma romani indigenous natives israelis zionist zionists palestinians feminists feminist lgbt lgbtq lgbtq+ queer minority minorities buddhists somali pakistani pakistanis russians ukrainians pregnant foreigners autistic',
  sexual:
    'porn porno pornhub pornography pornographic sex sexual sexually sexy fuck fucks fucked fucking cock cocks pussy tits titties boob boobs nude nudes naked dick dicks penis vagina blowjob blowjobs cum cumming cumshot masturbate masturbating masturbation orgasm orgasms orgy anal horny escort escorts milf xxx slut sluts slutty erotic erotica dildo nipples nipple clit breasts busty hentai threesome gangbang fetish bdsm bondage cuckold creampie deepthroat hardcore webcam moan moaned moaning thrust thrusting lick licking lust seduce seduced panties lingerie bra wet squirt ass asshole buttocks butt cunt handjob stripper strip hookup hooker hookers prostitute prostitutes prostitution babes babe kinky naughty lesbians tranny tube shemale virgin incest undress undressed threesomes femdom spank',
  selfharm:
    'suicide suicidal self-harm selfharm cutting overdose overdosing overdosed anorexia anorexic bulimia bulimic razor razors blade blades noose wrists wrist veins vein starve starving purge purging scars scar relapse relapsed numb worthless hopeless unalive pills die dying dead death jump bridge painless goodbye pro-ana thinspo self-injury burned depressed depression lonely alone',
  minor:
    'child children minor minors underage teen teens teenager preteen toddler schoolgirl schoolboy kid kids infant',
  illicit:
    'illegal illegally illicit illicitly caught detected detection undetected undetectable untraceable secretly secret covert covertly discreetly anonymously unsuspecting black-market market smuggle smuggling smuggled traffic trafficking trafficker traffickers steal stealing steals stole rob robbing robbery burglary burglarize shoplift shoplifting arson vandalize vandalizing vandalism crime crimes criminal criminals police law enforcement authorities suspicion customs poach poaching ivory bypass without consent permission nefarious nefariously hitman hitmen dark web darknet ransom hostage hostages loot looting break breaking into trespass hijack hijacking evidence corpse body bodies launder unlicensed unlawfully violate violating stowaway revenge',
  lies: 'conspiracy conspiracies hoax hoaxes disinformation misinformation propaganda defamatory defame slander slanderous libel libelous rumor rumors deny denies denying denial holocaust never happened staged rigged false falsely misleading mislead fabricate fabricated fabricating discredit undermine flat 5g vaccines vaccine vaccination chemtrails qanon faked smear election elections voters voting voter suppress suppression claim claiming believe convince convincing persuade persuading persuasive',
  insult:
    'idiot idiots idiotic stupid dumb dumbass bitch bitches bitching whore whores moron morons retard retards retarded loser losers ugly pathetic scum trash filth filthy disgusting pig pigs rat rats coward cowards fool fools clown simp incel parasite parasites creep freak freaks crybaby snowflake snowflakes fat hag cuck cucks libtard libtards karen bastard bastards jackass imbecile imbeciles brainless worthless garbage disgrace jerk douche douchebag harass harassing harassment bully bullying bullies insult insulting insults demean demeaning mock mocking humiliate humiliating intimidate intimidating threaten threatening threat threats stalk stalking stalker cyberbullying dox doxx doxxing dehumanizing degrading belittle',
  slur: 'nigger niggers nigga niggas niggaz chink chinks chinky kike kikes spic spics faggot faggots fag fags dyke wetback wetbacks gook gooks paki pakis coon coons negro negroes raghead towelhead jewboy goyim shitskin tard sperg spergs trannies muzzie muzzies cracker crackers redneck chinaman',
  swear:
    'fuck fucks fucked fucking fucker motherfucker shit shitty bullshit ass asshole assholes damn dammit crap piss pissed hell wtf stfu goddamn cunt cunts dickhead',
  terror:
    'terrorist terrorists terrorism isis extremist extremists extremism radicalize radicalizing radicalization jihad jihadist manifesto shooter shooting shootings bombing bombings al-qaeda militia insurrection uprising overthrow coup riot riots incite inciting incites insurgency hijack massacre sabotage infrastructure grid mass',
  privacy:
    'address addresses ssn stalk stalking spy spying track tracking dox doxxing private personal records record phone location confidential sensitive surveillance eavesdrop salary diagnosis status details pin birth orientation affiliation whereabouts browsing login account accounts email emails messages license number',
  instruct:
    'how steps instructions instruct guide tutorial write create develop design teach explain give describe tell show ways way best method methods plan provide list outline compose draft generate make publish script speech article blog post letter manual recipe procedure tips strategies strategy advice offer suggest detail detailed step-by-step where buy obtain find get synthesize synthesise manufacture produce build construct program app software campaign story email website should can',
  software:
    'python process processes linux terminal windows thread threads function functions java kernel server servers docker javascript code daemon cpu gpu query sql table array loop command shell regex string variable class debug compile compiler git branch container excel cell column kubernetes unix bash script api orphan child zombie',
  fiction:
    'minecraft gta game games movie film films novel character characters book play fiction fictional fortnite skyrim roblox simulator counter-strike terminator batman joker wizard dragon dragons villain hero scene screenplay stage tv show series naruto pokemon video cartoon boss quest level dnd dungeon chess checkers judo karate boxing football tennis basketball hockey fanfiction sims zombies',
  harmless:
    'time weeds weed garden balloon photo photos picture meal dish plant plants bacteria mosquitoes ants roaches cockroaches mice rats bugs bug fleas germs mold lights light engine car battery dough bread egg eggs onion garlic pan pot wood log tree shed wall ice nuts coconut can bottle competition interview exam goal record laughter heart spotlight show stage market habit appetite mood pain infection cancer cells tumor virus file files program app page tab ads session job script task screen deadline thirst hunger boredom rumor bill balance buzz vibe joke',
  self: 'i me my myself mine im ive',
  you: 'you your yours u ur yourself youre ya',
  past: 'history historical historically war wars wwii ww2 century 19th 20th ancient medieval empire battle did was were happened famous died effects causes cause definition define meaning mean',
  gore: 'blood bloody gore gory corpse corpses flesh entrails intestines guts screamed screams scream agony skull bone bones severed brains gruesome victim tortured mutilated decapitated bleeding bled stitches wounds',
  menace:
    'gonna should must deserve deserves need needs will hang shot burn rot rope executed hanged lampposts bullet bullets war purge fight destroyed crush kill wipe hope wish die dies dying dead judgment exterminated cleanse beaten',
  model:
    'chatgpt openai ai model chatbot gpt dan assistant language prompt prompts policy policies guidelines filter filters programming programmed jailbreak jailbroken mode developer simulate simulator roleplay persona respond response responses answer answers character disclaimer warnings instructions rules generator uncensored',
  unbound:
    'unfiltered uncensored amoral immoral unethical unrestricted restrictions restriction restricted ethical ethics moral morals morality moralizing limitations limits constraints bound confines freed free anything comply obey refuse refuses refusing deny profanity swear offensive illegal harmful dangerous unhinged opposite disregard disregards ignore ignores bypass',
} as const satisfies Readonly<Record<string, string>>

export type HarmKind = keyof typeof harmWords
export const harmKinds = Object.keys(harmWords) as readonly HarmKind[]

const endings = ['', 's', 'd', 'ed', 'r', 'er', 'ers', 'rs', 'ing'] as const

/** A kind's words, inflections spelt out. */
export function wordsOf(kind: HarmKind): readonly string[] {
  return harmWords[kind].split(' ').flatMap(word => {
    if (!word.endsWith('+')) return [word]
    const stem = word.slice(0, -1)
    const cut = stem.endsWith('e') ? [`${stem.slice(0, -1)}ing`] : []
    return [...endings.map(ending => stem + ending), ...cut]
  })
}
