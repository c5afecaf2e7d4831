"""Fifty places of New York that drones fly over: boroughs, landmarks and neighbourhoods."""

from __future__ import annotations

BOROUGHS = ("Manhattan", "Brooklyn", "Queens", "Bronx", "Staten Island")

# Longitude and latitude in degrees. The spatial pack knows the boroughs and these nine.
LANDMARKS = {
    "TimesSquare": (-73.9855, 40.7580),
    "StatueOfLiberty": (-74.0445, 40.6892),
    "YankeeStadium": (-73.9262, 40.8296),
    "CentralPark": (-73.9654, 40.7829),
    "BrooklynBridge": (-73.9969, 40.7061),
    "EmpireStateBuilding": (-73.9857, 40.7484),
    "GrandCentral": (-73.9772, 40.7527),
    "ConeyIsland": (-73.9812, 40.5755),
    "KennedyAirport": (-73.7781, 40.6413),
}

NEIGHBOURHOODS = {
    # Manhattan
    "BatteryPark": (-74.0170, 40.7033),
    "Chinatown": (-73.9970, 40.7158),
    "SoHo": (-74.0020, 40.7233),
    "EastVillage": (-73.9815, 40.7265),
    "Chelsea": (-74.0014, 40.7465),
    "UpperEastSide": (-73.9566, 40.7736),
    "UpperWestSide": (-73.9754, 40.7870),
    "Harlem": (-73.9465, 40.8116),
    "WashingtonHeights": (-73.9394, 40.8417),
    "Inwood": (-73.9212, 40.8677),
    # Bronx
    "MottHaven": (-73.9229, 40.8091),
    "HuntsPoint": (-73.8831, 40.8126),
    "Fordham": (-73.8985, 40.8593),
    "Riverdale": (-73.9124, 40.9005),
    "PelhamBay": (-73.8278, 40.8506),
    "CityIsland": (-73.7874, 40.8468),
    # Brooklyn
    "Williamsburg": (-73.9571, 40.7081),
    "DUMBO": (-73.9881, 40.7033),
    "RedHook": (-74.0122, 40.6734),
    "ParkSlope": (-73.9799, 40.6710),
    "CrownHeights": (-73.9422, 40.6694),
    "BayRidge": (-74.0303, 40.6264),
    "BrightonBeach": (-73.9597, 40.5781),
    "Canarsie": (-73.9018, 40.6402),
    # Queens
    "Astoria": (-73.9235, 40.7644),
    "LongIslandCity": (-73.9485, 40.7447),
    "Flushing": (-73.8331, 40.7675),
    "JacksonHeights": (-73.8831, 40.7557),
    "ForestHills": (-73.8448, 40.7196),
    "Jamaica": (-73.7889, 40.7027),
    "Rockaway": (-73.8263, 40.5860),
    "LaGuardia": (-73.8740, 40.7769),
    # Staten Island
    "StGeorge": (-74.0763, 40.6437),
    "Stapleton": (-74.0779, 40.6265),
    "GreatKills": (-74.1515, 40.5543),
    "Tottenville": (-74.2496, 40.5083),
}
"""From common knowledge, to some hundred metres."""

POINTS = LANDMARKS | NEIGHBOURHOODS
PLACES = (*BOROUGHS, *POINTS)

AT_WATER = (
    *("StatueOfLiberty", "BatteryPark", "BrooklynBridge", "DUMBO", "RedHook", "ConeyIsland"),
    *("CityIsland", "HuntsPoint", "StGeorge", "Stapleton", "Rockaway", "BayRidge"),
)
"""Places with boats."""
